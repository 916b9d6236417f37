/** What differs for a pod on Windows. */

/** Path of a volume below the directory of its container: without a drive, in backslashes. */
export const mountPathBelow = (mountPath: string): string =>
  mountPath
    .replace(/^[A-Za-z]:/, '')
    .split(/[\\/]/)
    .filter((name) => name !== '' && name !== '.' && name !== '..')
    .join('\\');
