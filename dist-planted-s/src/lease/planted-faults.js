import { noFaults } from "./faults.js";
/**
 * The test builds' side of the seam that each `faults.ts` describes: the same switches, not frozen. No file of this name is
 * compiled into the product.
 */
export function plantedFaults(noFaults) {
    const faults = { ...noFaults };
    const plant = (planted) => {
        const before = { ...faults };
        Object.assign(faults, planted);
        return () => Object.assign(faults, before);
    };
    return {
        faults,
        withFaults: (planted, body) => {
            const takeOut = plant(planted);
            try {
                return body();
            }
            finally {
                takeOut();
            }
        },
        duringFaults: async (planted, body) => {
            const takeOut = plant(planted);
            try {
                return await body();
            }
            finally {
                takeOut();
            }
        },
    };
}
export const { faults, withFaults, duringFaults } = plantedFaults(noFaults);
