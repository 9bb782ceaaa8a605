import { plantedFaults } from "../../test/planted/switches.js";
import { noFaults } from "./faults.js";

export const { faults, withFaults, duringFaults } = plantedFaults(noFaults);
