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
  type Owner,
  parseSecrets,
  parseState,
  type RememberedPods,
  type RememberedSecrets,
  stateText,
} from '../../rules/remembered-state.ts';
import { describeError } from '../describe-error.ts';

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
  #saving: Promise<void> | undefined;
  #complaint: string | undefined;
  /** Secrets on disk that cannot be opened now: they stay until there are others. */
  #unopened: string | undefined;

  constructor(dependencies: PodMemoryDependencies) {
    this.#dependencies = dependencies;
  }

  /** The newest state that can be used. Undefined: none, as on a new machine. */
  async recall(): Promise<Remembered | undefined> {
    const { generations, owner, log } = this.#dependencies;
    for (const each of await generations.read()) {
      const found = each.kind === 'failed' ? each : parseState(each.text, owner);
      if ('state' in found) {
        const remembered = { ...found.state, ...(await this.#opened(found.sealed)) };
        this.#newest = remembered;
        this.#written = contentOf(remembered);
        return remembered;
      }
      log.warn('what this machine ran before cannot be used', { why: found.why });
    }
    return undefined;
  }

  /** Resolves when it is on disk, or the attempt has failed. Never rejects. */
  save(remembered: Remembered): Promise<void> {
    this.#newest = remembered;
    this.#saving ??= this.#saveNewest().finally(() => {
      this.#saving = undefined;
    });
    return this.#saving;
  }

  /** Seals the newest state again, with the key that stays. */
  async reseal(): Promise<void> {
    await this.#saving;
    this.#written = undefined;
    if (this.#newest !== undefined) await this.save(this.#newest);
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

  async #saveNewest(): Promise<void> {
    let remembered: Remembered | undefined;
    while (this.#newest !== remembered && this.#newest !== undefined) {
      remembered = this.#newest;
      await this.#write(remembered);
    }
  }

  async #write({ secrets, tokens, ...state }: Remembered): Promise<void> {
    const { generations, owner, sealer, log } = this.#dependencies;
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
      if (this.#complaint === undefined) log.warn('the pods of this machine cannot be remembered', { why });
      this.#complaint = `the pods of this machine cannot be remembered: ${why}`;
    }
  }
}

/** Which tokens there are, not their text: they are replaced each hour, and that is no reason to write. */
const contentOf = ({ tokens, ...others }: Remembered): string =>
  JSON.stringify([others, tokens.map(({ podUid, key }) => [podUid, key])]);
