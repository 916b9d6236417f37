/**
 * A disk that loses power: before the chosen step the machine is off, and what was not synced may be lost.
 *
 *   lost   only synced names and synced content survive; a name is synced with its directory
 *   kept   everything survives
 *   torn   names survive, content that was not synced is empty
 */
import type { UpdateFiles } from '../../agent/ports/update-files.ts';

export type Survival = 'lost' | 'kept' | 'torn';
export const SURVIVALS: readonly Survival[] = ['lost', 'kept', 'torn'];

export class PowerCut extends Error {
  override readonly name = 'PowerCut';
}

type Entry = { readonly link: string } | { readonly isDirectory: true } | { content: Buffer; synced: Buffer };

export class CutDisk {
  #names = new Map<string, Entry>();
  #syncedNames = new Map<string, Entry>();
  #stepsLeft = Number.POSITIVE_INFINITY;
  #isOff = false;
  /** Steps that change the disk. */
  steps = 0;
  /** The sync of these files and directories does nothing: proves that the tests notice it. '' is the root. */
  readonly ignoresSync: (name: string) => boolean;

  constructor(ignoresSync: (name: string) => boolean = () => false) {
    this.ignoresSync = ignoresSync;
  }

  /** The power fails before the next step but `steps`. */
  cutAfter(steps: number): void {
    this.#stepsLeft = steps;
  }

  /** The machine boots. */
  powerOn(survival: Survival): void {
    const names = survival === 'lost' ? this.#syncedNames : this.#names;
    const copies = new Map<string, Entry>();
    const isReachable = (name: string): boolean => name === '' || (names.has(name) && isReachable(parentOf(name)));
    for (const [name, entry] of names) if (isReachable(name)) copies.set(name, afterPower(entry, survival));
    this.#names = copies;
    this.#syncedNames = new Map(copies);
    this.#stepsLeft = Number.POSITIVE_INFINITY;
    this.#isOff = false;
  }

  isOff(): boolean {
    return this.#isOff;
  }

  contentOf(name: string): string | undefined {
    const entry = this.#names.get(name);
    return entry !== undefined && 'content' in entry ? entry.content.toString() : undefined;
  }

  listed(): string[] {
    return [...this.#names.keys()].toSorted();
  }

  /** One that exists is not changed. */
  makeDirectory(name: string): void {
    this.#refuseOff();
    if (!this.#names.has(name)) this.#step(() => this.#names.set(name, { isDirectory: true }));
  }

  /** What was created, renamed or removed in this directory survives. */
  syncNames(directory: string): void {
    this.#step(() => {
      if (this.ignoresSync(directory)) return;
      const isIn = (name: string): boolean => parentOf(name) === directory;
      for (const name of this.#syncedNames.keys()) if (isIn(name)) this.#syncedNames.delete(name);
      for (const [name, entry] of this.#names) if (isIn(name)) this.#syncedNames.set(name, entry);
    });
  }

  files(): UpdateFiles {
    const step = async (act: () => void): Promise<void> => this.#step(act);
    return {
      readText: async (name) => {
        this.#refuseOff();
        return this.contentOf(name);
      },
      readLink: async (name) => {
        this.#refuseOff();
        const entry = this.#names.get(name);
        return entry !== undefined && 'link' in entry ? entry.link : undefined;
      },
      names: async () => {
        this.#refuseOff();
        return this.listed();
      },
      create: async (name) => {
        const entry = { content: Buffer.alloc(0), synced: Buffer.alloc(0) };
        await step(() => this.#names.set(name, entry));
        return {
          write: (bytes) =>
            step(() => {
              entry.content = Buffer.concat([entry.content, bytes]);
            }),
          sync: () =>
            step(() => {
              if (!this.ignoresSync(name)) entry.synced = entry.content;
            }),
          close: async () => undefined,
        };
      },
      link: (name, target) => step(() => this.#names.set(name, { link: target })),
      rename: (from, to) =>
        step(() => {
          const entry = this.#names.get(from);
          if (entry === undefined) throw new Error(`${from} does not exist`);
          this.#names.delete(from);
          this.#names.set(to, entry);
        }),
      remove: (name) => step(() => this.#names.delete(name)),
      syncNames: async () => this.syncNames(''),
    };
  }

  #refuseOff(): void {
    if (this.#isOff) throw new PowerCut('the machine is off');
  }

  #step(act: () => void): void {
    this.#refuseOff();
    if (this.#stepsLeft === 0) {
      this.#isOff = true;
      throw new PowerCut('the power failed');
    }
    this.#stepsLeft -= 1;
    this.steps += 1;
    act();
  }
}

const parentOf = (name: string): string => name.slice(0, Math.max(0, name.lastIndexOf('/')));

function afterPower(entry: Entry, survival: Survival): Entry {
  if (!('content' in entry)) return entry;
  const content = survival === 'kept' ? entry.content : entry.synced;
  return { content, synced: content };
}
