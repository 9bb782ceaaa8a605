export function use(): Promise<Record<string, string>>;
