/** An address without name and password in it. */
export const withoutSecrets = (endpoint: string): string => endpoint.replaceAll(/\/\/[^@/,]*@/g, "//");
