/**
 * The keys of this machine, and the choice of the one that signs.
 *
 * During a key rotation (agent/app/key-rotation.ts) there are two keys. When the signing key is refused, the other one
 * signs. If the power failed during the rotation, the cluster still knows at least one of them.
 *
 * The files are authoritative, because another agent on this disk may have replaced the keys. They are read again
 * before each step of the rotation, and while none of our keys is accepted.
 */
import type { Log } from '../../../shared/observability/log.ts';
import type { MachineKeys, PublicHalf } from '../../ports/machine-keys.ts';
import type { AgentTime } from '../../ports/time.ts';
import { isWorthATry, keyAfterRefusal } from '../../rules/key-rotation.ts';
import type { Enroller, KeyPair } from './enroller.ts';
import {
  adoptNextMachineKey,
  KeyFileError,
  type MachineKey,
  machineKey,
  makeNextMachineKey,
  nextMachineKey,
  presentMachineKey,
} from './key-file.ts';

export interface EnrolledKeys extends KeyPair {
  readonly nodeLabels: Readonly<Record<string, string>>;
}

export interface KeyRingDependencies {
  readonly nodeName: string;
  readonly rootDirectory: string;
  readonly time: Pick<AgentTime, 'monotonicMs'>;
  readonly log: Log;
  readonly enroller: Enroller;
  /** Called after another key began to sign. */
  readonly onSigningKeyChange: (keyId: string) => void;
}

export class KeyRing implements Omit<MachineKeys, 'serverNowMs'> {
  readonly #dependencies: KeyRingDependencies;
  #keys: EnrolledKeys | undefined;
  /** Shared by concurrent requests: the key is enrolled once. */
  #loading: Promise<EnrolledKeys> | undefined;
  #signsWithNext = false;
  /** By id of a key: when it was last refused, since the last rotation began. Monotonic milliseconds. */
  readonly #refusedAtMs = new Map<string, number>();
  #acceptedKeyId: string | undefined;
  /** All our keys were refused. */
  #isLockedOut = false;
  /** When the files were last read because of that. Monotonic milliseconds. */
  #lockedOutReadAtMs: number | undefined;
  #complaint: string | undefined;

  constructor(dependencies: KeyRingDependencies) {
    this.#dependencies = dependencies;
  }

  /** The keys, enrolled. Rejects with an EnrolmentError or a KeyFileError. */
  async enrolled(): Promise<EnrolledKeys> {
    if (this.#keys !== undefined) return this.#keys;
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  /** The key that signs the next request. Rejects as `enrolled` does. */
  async signingKey(): Promise<MachineKey> {
    const { time, log } = this.#dependencies;
    if (this.#isLockedOut && isWorthATry(this.#lockedOutReadAtMs, time.monotonicMs())) {
      this.#lockedOutReadAtMs = time.monotonicMs();
      await this.#reread().catch((error: unknown) => log.warn('the keys could not be read again', { error }));
    }
    return this.#signing(await this.enrolled());
  }

  /** What is wrong with the key files; undefined if nothing is. */
  complaint(): string | undefined {
    return this.#complaint;
  }

  /** A request signed with this key was accepted. */
  accepted(keyId: string): void {
    this.#acceptedKeyId = keyId;
    this.#isLockedOut = false;
  }

  /** A request signed with this key was refused because of the key. Chooses the key that signs the next request. */
  refused(keyId: string): ReturnType<typeof keyAfterRefusal>['kind'] {
    const { time, log, nodeName } = this.#dependencies;
    const nowMs = time.monotonicMs();
    this.#refusedAtMs.set(keyId, nowMs);
    const choice = keyAfterRefusal({
      refusedKeyId: keyId,
      currentKeyId: this.#keys?.key.keyId,
      nextKeyId: this.#keys?.next?.keyId,
      acceptedKeyId: this.#acceptedKeyId,
      refusedAtMs: this.#refusedAtMs,
      nowMs,
    });
    this.#isLockedOut = choice.kind !== 'otherKey';
    if (choice.kind !== 'onlyKey') this.#signsWithNext = choice.keyId === this.#keys?.next?.keyId;
    if (choice.kind === 'otherKey') {
      log.warn('our key was refused; the other one signs now', { node: nodeName, refusedKeyId: keyId });
    }
    return choice.kind;
  }

  async held(): Promise<{ readonly current: PublicHalf; readonly next: PublicHalf | undefined }> {
    const { key, next } = await this.#reread();
    return { current: key, next };
  }

  async makeNext(): Promise<PublicHalf> {
    const before = await this.enrolled();
    const next = await makeNextMachineKey(this.#dependencies.rootDirectory);
    this.#keys = { ...before, next };
    return next;
  }

  signWithNext(): void {
    const next = this.#keys?.next;
    if (this.#signsWithNext || next === undefined) return;
    this.#refusedAtMs.clear();
    this.#signsWithNext = true;
    this.#dependencies.onSigningKeyChange(next.keyId);
  }

  signingKeyId(): string | undefined {
    return this.#keys === undefined ? undefined : this.#signing(this.#keys).keyId;
  }

  async adoptNext(): Promise<void> {
    const { rootDirectory, enroller, onSigningKeyChange } = this.#dependencies;
    const { next, ...before } = await this.enrolled();
    if (next === undefined) return;
    await enroller.nameNextKey({ key: before.key, next });
    await adoptNextMachineKey(rootDirectory, next.keyId);
    enroller.keyAdopted(next.keyId);
    this.#keys = { ...before, key: next, next: undefined };
    this.#signsWithNext = false;
    onSigningKeyChange(next.keyId);
  }

  async #load(): Promise<EnrolledKeys> {
    const { rootDirectory, enroller } = this.#dependencies;
    try {
      const key = await machineKey(rootDirectory);
      const next = await this.#usableNextKey();
      this.#keys = { key, next, nodeLabels: await enroller.nodeLabels({ key, next }) };
      this.#complaint = undefined;
      return this.#keys;
    } catch (error) {
      if (error instanceof KeyFileError) this.#complaint = error.message;
      throw error;
    }
  }

  /** Reads the files again. If the key file no longer exists, the keys in memory stay valid. */
  async #reread(): Promise<EnrolledKeys> {
    const before = await this.enrolled();
    const key = await presentMachineKey(this.#dependencies.rootDirectory);
    const next = await this.#usableNextKey();
    // A step of our own rotation may have changed them during the reads.
    if (this.#keys !== before) return this.enrolled();
    if (key === undefined || (key.keyId === before.key.keyId && next?.keyId === before.next?.keyId)) return before;
    const signedWith = this.#signing(before).keyId;
    this.#keys = { ...before, key, next };
    this.#signsWithNext = next?.keyId === signedWith;
    this.#dependencies.onSigningKeyChange(this.#signing(this.#keys).keyId);
    return this.#keys;
  }

  #usableNextKey(): Promise<MachineKey | undefined> {
    return nextMachineKey(this.#dependencies.rootDirectory).catch((error: unknown) => {
      this.#dependencies.log.warn('the next key of this machine cannot be used', { error });
      return undefined;
    });
  }

  #signing({ key, next }: KeyPair): MachineKey {
    return this.#signsWithNext ? (next ?? key) : key;
  }
}
