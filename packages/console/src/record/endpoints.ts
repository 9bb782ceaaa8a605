/** An address without its user name and password. */
export const withoutSecrets = (endpoint: string): string => endpoint.replaceAll(/\/\/[^@/,]*@/g, "//");
