import { readdirSync, readlinkSync } from 'node:fs';

/** What this process has open in a folder and below it, also if its name was removed. */
export const openedBelow = (folder: string): readonly string[] =>
  readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${descriptor}`);
      return path.startsWith(folder) ? [path] : [];
    } catch {
      return [];
    }
  });
