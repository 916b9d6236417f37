/**
 * The disk of agent/adapters/system for tests: a CutDisk. With `vi.mock` of `files.ts` and `directory.ts` of that
 * folder, all that is below `CUT_ROOT` is on `cutFs.disk`.
 */
import { relative } from 'node:path';
import { CutDisk } from './cut-disk.ts';

export const CUT_ROOT = '/cut-disk';
export const cutFs = { disk: new CutDisk() };

type Handle = Awaited<ReturnType<ReturnType<CutDisk['files']>['create']>>;

const nameOf = (path: string): string => relative(CUT_ROOT, path);

/** Instead of shared/host/directory.ts. */
export const cutDirectory = () => ({ makeDirectory: (path: string) => cutFs.disk.makeDirectory(nameOf(path)) });

/** Instead of agent/adapters/system/files.ts: what files of a state need. */
export function cutFiles() {
  const opened = new Map<number, Handle>();
  let descriptors = 0;
  return {
    async open(path: string, flags: string) {
      descriptors += 1;
      const syncNames = async (): Promise<void> => cutFs.disk.syncNames(nameOf(path));
      const directory = { write: async () => undefined, sync: syncNames, close: async () => undefined };
      opened.set(descriptors, flags === 'r' ? directory : await cutFs.disk.files().create(nameOf(path)));
      return descriptors;
    },
    fchmod: async () => undefined,
    async writeFile(descriptor: number, text: string) {
      const bytes = Buffer.from(text);
      // The power may fail between the two.
      for (const part of [bytes.subarray(0, bytes.length / 2), bytes.subarray(bytes.length / 2)]) {
        await opened.get(descriptor)?.write(part);
      }
    },
    fsync: async (descriptor: number) => opened.get(descriptor)?.sync(),
    close: async (descriptor: number) => void opened.delete(descriptor),
    rename: (from: string, to: string) => cutFs.disk.files().rename(nameOf(from), nameOf(to)),
    rm: (path: string) => cutFs.disk.files().remove(nameOf(path)),
    async readFile(path: string) {
      const text = await cutFs.disk.files().readText(nameOf(path));
      if (text === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
      return text;
    },
  };
}
