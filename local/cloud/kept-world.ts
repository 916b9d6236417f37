/** The instances and volumes of the local EC2, stored in a file, with their changes of state reported when they happen. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import {
  CloudWorld,
  type CloudWorldOptions,
  type CloudWorldState,
  type InstanceStateChange,
} from '../../shared/adapters/memory/cloud-world.ts';
import { StartError } from '../start-error.ts';

export class KeptWorld {
  readonly world: CloudWorld;
  readonly #options: CloudWorldOptions;
  readonly #file: string | undefined;
  readonly #listeners: ((change: InstanceStateChange) => void)[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** @throws StartError when the file cannot be read */
  constructor(options: CloudWorldOptions, file: string | undefined) {
    this.#options = options;
    this.#file = file;
    this.world = new CloudWorld(options);
    if (file !== undefined && existsSync(file)) this.world.restore(readWorld(file));
  }

  subscribe(listener: (change: InstanceStateChange) => void): void {
    this.#listeners.push(listener);
  }

  /** After every change: stores the world and reports changes of state. */
  changed(): void {
    if (this.#file !== undefined) {
      writeFileSync(`${this.#file}.new`, JSON.stringify(this.world.state()), { mode: 0o600 });
      renameSync(`${this.#file}.new`, this.#file);
    }
    this.report();
  }

  /** Reports past changes of state, and again at the time of the next one. */
  report(): void {
    for (const change of this.world.takeStateChanges()) for (const listener of this.#listeners) listener(change);
    clearTimeout(this.#timer);
    const nextMs = this.world.nextChangeAtMs();
    if (nextMs === undefined) return;
    this.#timer = setTimeout(() => this.report(), Math.max(1, nextMs - this.#options.clock.nowMs()));
    this.#timer.unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

function readWorld(file: string): CloudWorldState {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as CloudWorldState;
  } catch (cause) {
    throw new StartError(`${file} is not readable: delete it to begin with an empty EC2`, { cause });
  }
}
