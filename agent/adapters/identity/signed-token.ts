import { createHash, sign } from 'node:crypto';
import {
  beatAudienceOf,
  boundTokenClaims,
  isUsable,
  type TokenClaims,
  tokenClaims,
} from '../../../shared/access/node-token.ts';
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

type Audience = 'all' | 'beat';

/** The current tokens of this machine, one per audience. Each is signed again shortly before it expires. */
export class TokenSigner {
  readonly #subject: string;
  readonly #clusterId: string;
  readonly #clock: ServerClock;
  readonly #current = new Map<Audience, SignedToken>();

  constructor(subject: string, clusterId: string, clock: ServerClock) {
    this.#subject = subject;
    this.#clusterId = clusterId;
    this.#clock = clock;
  }

  /** The current token while it is usable; otherwise a new one, signed with this key. */
  bearer(key: MachineKey, audience: Audience): string {
    const nowMs = this.#clock.nowMs();
    let current = this.#current.get(audience);
    if (current === undefined || !isUsable(current.claims, nowMs)) {
      const aud = audience === 'all' ? this.#clusterId : beatAudienceOf(this.#clusterId);
      const claims = tokenClaims(this.#subject, aud, nowMs);
      current = { text: signedText(key, claims), keyId: key.keyId, claims, offsetMs: this.#clock.offsetMs() };
      this.#current.set(audience, current);
    }
    return current.text;
  }

  /** A token for one heartbeat with this body. It is not kept. */
  boundBearer(key: MachineKey, body: Uint8Array): string {
    const bodySha256 = createHash('sha256').update(body).digest('base64url');
    const bound = { clusterId: this.#clusterId, bodySha256 };
    return signedText(key, boundTokenClaims(this.#subject, bound, this.#clock.nowMs()));
  }

  /** Key and audience of a token, if it is a current one. */
  find(token: string): { readonly audience: Audience; readonly keyId: string } | undefined {
    for (const [audience, { text, keyId }] of this.#current) {
      if (token === text) return { audience, keyId };
    }
    return undefined;
  }

  /** Whether the server refused the current token because of its dates, and not because of its key. */
  isRefusedByClock(audience: Audience): boolean {
    const current = this.#current.get(audience);
    if (current === undefined) return false;
    const { claims, offsetMs } = current;
    return !isUsable(claims, this.#clock.nowMs()) || explainsRefusal(offsetMs, this.#clock.offsetMs());
  }

  discard(): void {
    this.#current.clear();
  }

  discardUnlessSignedBy(keyId: string): void {
    for (const [audience, current] of this.#current) if (current.keyId !== keyId) this.#current.delete(audience);
  }
}

/** A JWT with an ES256 signature. */
function signedText(key: MachineKey, claims: TokenClaims): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${part({ alg: 'ES256', typ: 'JWT', kid: key.keyId })}.${part(claims)}`;
  const signature = sign('sha256', Buffer.from(text), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
  return `${text}.${signature.toString('base64url')}`;
}
