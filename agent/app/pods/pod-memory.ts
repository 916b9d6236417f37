/**
 * Keeps on disk what this machine ran last (agent/rules/remembered-state.ts).
 *
 * Saves are in order, and only the newest one waits. What is on disk already is not written again: at rest nothing is
 * written. A disk that is full or read-only stops no pod: the state before stays, the Ready condition says so, and the
 * next save tries again.
 */
import type { Log } from '../../../shared/observability/log.ts';
import type { Sealer } from '../../ports/sealer.ts';
import type { StateGenerations } from '../../ports/state-generations.ts';
import {
  NOT_REMEMBERED,
  type Owner,
  parseSecrets,
  type RememberedPods,
  type RememberedSecrets,
  rememberedPod,
  statesOf,
  stateText,
} from '../../rules/remembered-state.ts';
import { describeError } from '../describe-error.ts';

/** How many states the disk has. */
const GENERATIONS = 2;

export interface Remembered extends RememberedPods, RememberedSecrets {}

export interface PodMemoryDependencies {
  readonly owner: Owner;
  readonly generations: StateGenerations;
  /** Absent: Secrets and tokens are not kept. */
  readonly sealer: Sealer | undefined;
  readonly log: Log;
}

export class PodMemory {
  readonly #dependencies: PodMemoryDependencies;
  /** What is on disk, without the tokens that replace others of the same pod. */
  #written: string | undefined;
  #newest: Remembered | undefined;
  /** The save that has not begun to write. */
  #waiting: Promise<void> | undefined;
  #turn: Promise<void> = Promise.resolve();
  #complaint: string | undefined;
  /** Secrets on disk that cannot be opened now: they stay until there are others. */
  #unopened: string | undefined;

  constructor(dependencies: PodMemoryDependencies) {
    this.#dependencies = dependencies;
  }

  /** The newest state that can be used. Undefined: none, as on a new machine. */
  async read(): Promise<Remembered | undefined> {
    const { generations, owner, sealer, log } = this.#dependencies;
    const { newest, refusals, hasSecrets } = statesOf(await generations.read(), owner);
    const instead = newest === undefined ? 'static pods alone' : 'the pods before those';
    for (const why of refusals) log.warn('what this machine ran before cannot be used', { why, instead });
    if (newest === undefined) return undefined;
    const remembered = { ...newest.state, ...(await this.#opened(newest.sealed)) };
    this.#newest = remembered;
    this.#written = contentOf(remembered);
    // The configuration says so since the last start: also not in the state before.
    const hasUnwanted = sealer === undefined && hasSecrets;
    for (let writes = 0; hasUnwanted && writes < GENERATIONS; writes += 1) await this.reseal();
    return remembered;
  }

  /** Resolves when it, or a newer one, is on disk, or the attempt has failed. Never rejects. */
  async save(remembered: Remembered): Promise<void> {
    // After most steps of a pod nothing has changed: its text would be all Secrets of the machine.
    if (this.#complaint === undefined && this.#newest !== undefined && isSame(this.#newest, remembered)) {
      return this.#turn;
    }
    this.#newest = remembered;
    this.#waiting ??= this.#inTurn(async () => {
      this.#waiting = undefined;
      await this.#writeNewest();
    });
    await this.#waiting;
  }

  /** Seals the newest state again, with the key that stays. */
  reseal(): Promise<void> {
    return this.#inTurn(async () => {
      this.#written = undefined;
      await this.#writeNewest();
    });
  }

  /** Why the newest state is not on disk; undefined if it is. */
  complaint(): string | undefined {
    return this.#complaint;
  }

  async #opened(sealed: string | undefined): Promise<RememberedSecrets> {
    const { sealer, log } = this.#dependencies;
    const nothing = { secrets: [], tokens: [] };
    if (sealed === undefined || sealer === undefined) return nothing;
    try {
      const text = await sealer.open(sealed);
      if (text !== undefined) return parseSecrets(text);
      log.warn('the remembered Secrets cannot be used', { why: 'they were sealed with another key of this machine' });
    } catch (cause) {
      log.warn('the remembered Secrets cannot be used', { why: describeError(cause) });
    }
    this.#unopened = sealed;
    return nothing;
  }

  /** One write at a time. No work rejects. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#turn = this.#turn.then(work);
    return this.#turn;
  }

  async #writeNewest(): Promise<void> {
    if (this.#newest !== undefined) await this.#write(this.#newest);
  }

  async #write({ pods, secrets, tokens, ...others }: Remembered): Promise<void> {
    const { generations, owner, sealer, log } = this.#dependencies;
    const state = { ...others, pods: pods.map(rememberedPod) };
    const kept = sealer === undefined ? { secrets: [], tokens: [] } : { secrets, tokens };
    const content = contentOf({ ...state, ...kept });
    if (content === this.#written) return;
    try {
      const isAnySecret = kept.secrets.length + kept.tokens.length > 0;
      const sealed = isAnySecret ? await sealer?.seal(JSON.stringify(kept)) : this.#unopened;
      await generations.write(stateText(owner, state, sealed));
      this.#unopened = isAnySecret ? undefined : this.#unopened;
      this.#written = content;
      this.#complaint = undefined;
    } catch (cause) {
      const why = describeError(cause);
      if (this.#complaint === undefined) log.warn(NOT_REMEMBERED, { why });
      this.#complaint = `${NOT_REMEMBERED}: ${why}`;
    }
  }
}

const tokenNames = ({ tokens }: Remembered): readonly string[] => tokens.map(({ podUid, key }) => `${podUid} ${key}`);

/** Which tokens there are, not their text: they are replaced each hour, and that is no reason to write. */
const contentOf = ({ tokens, ...others }: Remembered): string =>
  JSON.stringify([others, tokenNames({ ...others, tokens })]);

/** Whether both are of the same objects, which are replaced when they change. */
function isSame(one: Remembered, other: Remembered): boolean {
  const [parts, others] = [partsOf(one), partsOf(other)];
  return parts.length === others.length && parts.every((part, index) => part === others[index]);
}

const partsOf = (remembered: Remembered): readonly unknown[] => {
  const { pods, configMaps, secrets, hostIp, allocatable } = remembered;
  return [
    hostIp,
    allocatable,
    ...pods,
    ...[...configMaps, ...secrets].map(({ object }) => object),
    ...tokenNames(remembered),
  ];
};
