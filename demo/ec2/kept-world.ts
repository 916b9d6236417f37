/**
 * The instances and volumes of the local EC2, stored in a file, with their changes of state reported when they happen.
 */
import { existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { type DelayedWrite, delayedWrite } from '../../shared/host/delayed-write.ts';
import { StartError } from '../../shared/host/start-error.ts';
import { replaceFile } from '../../shared/host/write-file.ts';
import { CloudWorld, type CloudWorldOptions, type CloudWorldState, type InstanceStateChange } from './cloud-world.ts';

export interface KeptWorldOptions extends CloudWorldOptions {
  /** Undefined: it is not stored. */
  readonly file?: string | undefined;
  onTrouble?(message: string): void;
}

/** Between attempts to store a change. Milliseconds. */
const STORE_AGAIN_MS = 1_000;

export class KeptWorld {
  readonly world: CloudWorld;
  readonly #options: CloudWorldOptions;
  readonly #stored: DelayedWrite | undefined;
  readonly #listeners: ((change: InstanceStateChange) => void)[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** @throws StartError when the file cannot be read */
  constructor(options: KeptWorldOptions) {
    const { file, onTrouble = () => {} } = options;
    this.#options = options;
    this.world = new CloudWorld(options);
    if (file === undefined) return;
    this.#stored = delayedWrite({
      file: basename(file),
      delayMs: STORE_AGAIN_MS,
      write: () => replaceFile(file, JSON.stringify(this.world.state())),
      onTrouble,
    });
    if (existsSync(file)) this.world.restore(readWorld(file));
  }

  subscribe(listener: (change: InstanceStateChange) => void): void {
    this.#listeners.push(listener);
  }

  /** After every change: stores the world and reports changes of state. */
  changed(): void {
    this.#stored?.now();
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
    this.#stored?.end();
  }
}

function readWorld(file: string): CloudWorldState {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as CloudWorldState;
  } catch (cause) {
    throw new StartError(`${file} is not readable: delete it to begin with an empty EC2`, { cause });
  }
}
