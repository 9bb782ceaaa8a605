/**
 * The waist: what every program sees, whichever ground its leases rest on.
 */
export {};
