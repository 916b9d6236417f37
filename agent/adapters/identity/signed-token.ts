import { sign } from 'node:crypto';
import { isUsable, type TokenClaims, tokenClaims } from '../../../shared/domain/access/node-token.ts';
import { explainsRefusal } from '../../rules/node-token.ts';
import type { MachineKey } from './key-file.ts';
import type { ServerClock } from './server-clock.ts';

interface SignedToken {
  readonly text: string;
  readonly keyId: string;
  readonly claims: TokenClaims;
  /** Offset of the server's clock when the token was signed. Milliseconds. */
  readonly offsetMs: number;
}

/** The current token of this machine. It is signed again shortly before it expires. */
export class TokenSigner {
  readonly #subject: string;
  readonly #clusterId: string;
  readonly #clock: ServerClock;
  #current: SignedToken | undefined;

  constructor(subject: string, clusterId: string, clock: ServerClock) {
    this.#subject = subject;
    this.#clusterId = clusterId;
    this.#clock = clock;
  }

  /** The current token while it is usable; otherwise a new one, signed with this key. */
  bearer(key: MachineKey): string {
    const nowMs = this.#clock.nowMs();
    if (this.#current === undefined || !isUsable(this.#current.claims, nowMs)) {
      const claims = tokenClaims(this.#subject, this.#clusterId, nowMs);
      this.#current = { text: signedText(key, claims), keyId: key.keyId, claims, offsetMs: this.#clock.offsetMs() };
    }
    return this.#current.text;
  }

  /** Key of the current token, if the answer was to this token. An answer without a token is to the current one. */
  keyIdOf(token: string | undefined): string | undefined {
    return token === undefined || token === this.#current?.text ? this.#current?.keyId : undefined;
  }

  /** Whether the server refused the current token because of its dates, and not because of its key. */
  isRefusedByClock(): boolean {
    if (this.#current === undefined) return false;
    const { claims, offsetMs } = this.#current;
    return !isUsable(claims, this.#clock.nowMs()) || explainsRefusal(offsetMs, this.#clock.offsetMs());
  }

  discard(): void {
    this.#current = undefined;
  }

  discardUnlessSignedBy(keyId: string): void {
    if (this.#current?.keyId !== keyId) this.#current = undefined;
  }
}

/** A JWT with an ES256 signature. */
function signedText(key: MachineKey, claims: TokenClaims): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${part({ alg: 'ES256', typ: 'JWT', kid: key.keyId })}.${part(claims)}`;
  const signature = sign('sha256', Buffer.from(text), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
  return `${text}.${signature.toString('base64url')}`;
}
