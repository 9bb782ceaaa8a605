import { plantedFaults } from "../../lease/planted-faults.js";
import { noFaults } from "./faults.js";

export const { faults, withFaults, duringFaults } = plantedFaults(noFaults);
