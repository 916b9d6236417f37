const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz']);

export const isHealthPath = (path: string): boolean => HEALTH_PATHS.has(path);
