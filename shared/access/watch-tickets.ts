/**
 * Watch tickets: `key id.payload.signature`, base64url. The payload has the user, who impersonates it, and the expiry.
 * The Ed25519 signature also covers the target, which is the path and query of the watch. The ticket does not contain
 * the target, so a ticket for one watch opens no other.
 *
 * The API signs with the key of its process and stores the public half. The watch function reads the public half once.
 * It cannot issue tickets (docs/decisions/0009-keys-of-our-own-processes.md).
 */
import { type KeyObject, verify } from 'node:crypto';
import { defined } from '../defined.ts';
import { lookupMemory } from './bearer.ts';
import { hasEnded } from './process-key.ts';
import type { ProcessKeys, TicketKeys } from './process-keys.ts';
import { keyObjectOf } from './public-keys.ts';
import type { UserInfo } from './user-info.ts';

/** The one watch that a ticket permits, as the API parsed and authorized it. */
export interface WatchAdmission {
  readonly user: UserInfo;
  /** Who impersonates the user; absent: the user itself was authenticated. */
  readonly caller?: UserInfo;
  /** Path and query, exactly as the client will request them. */
  readonly target: string;
}

export type TicketVerdict =
  | { readonly kind: 'valid'; readonly user: UserInfo; readonly caller?: UserInfo }
  | { readonly kind: 'refused'; readonly reason: string };

/**
 * Short-lived, signed permission to open one watch at another endpoint. The API redirects a watch there. Clients drop
 * their credentials on a redirect to another host, so the ticket replaces them.
 */
export interface WatchTicketIssuer {
  /** Rejects if there is no key to sign with. */
  issue(admission: WatchAdmission, nowMs: number): Promise<string>;
}

/** Verifies tickets. It has no private key, so it cannot issue one. */
export interface WatchTicketVerifier {
  verify(ticket: string, target: string, nowMs: number): Promise<TicketVerdict>;
}

/** Lifetime of a ticket. Clients follow a redirect at once. */
export const TICKET_SECONDS = 60;
/** A user with a thousand groups still fits; API Gateway and function URLs bound a request line at 10 KB and more. */
const TICKET_CHARACTERS_MAX = 6_000;
/** A key that was removed from the table is accepted for at most this long. Milliseconds. */
const KEYS_LIVE_MS = 3_600_000;
/** A missing key is cached for this long. Milliseconds. */
const ABSENT_KEYS_LIVE_MS = 5_000;
/** Maximum number of cached keys, and of ids without a key. */
const KEYS_MAX = 1_000;

interface Payload extends Pick<WatchAdmission, 'user' | 'caller'> {
  /** Last millisecond of validity. */
  readonly untilMs: number;
}

/** The lengths are those of an Ed25519 key id and signature. */
const TICKET_FORMAT = /^([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{86})$/;

/** The length comes first: no part of the payload can then be read as the target. */
const signedText = (payload: string, target: string): string => `watch ticket ${payload.length}.${payload}.${target}`;

export const watchTicketIssuer = (keys: ProcessKeys): WatchTicketIssuer => ({
  async issue({ user, caller, target }, nowMs) {
    const key = await keys.current(nowMs);
    const content: Payload = { user, ...defined({ caller }), untilMs: nowMs + TICKET_SECONDS * 1_000 };
    const payload = Buffer.from(JSON.stringify(content)).toString('base64url');
    return `${key.keyId}.${payload}.${key.sign(signedText(payload, target))}`;
  },
});

interface KnownKey {
  /** undefined: there is no such key. */
  readonly key: { readonly publicKey: KeyObject; readonly throughMs: number } | undefined;
  readonly readAtMs: number;
}

/** A read time in the future means that the clock was set back. */
const isFresh = ({ key, readAtMs }: KnownKey, nowMs: number): boolean =>
  Math.abs(nowMs - readAtMs) < (key === undefined ? ABSENT_KEYS_LIVE_MS : KEYS_LIVE_MS);

const refused = (reason: string): TicketVerdict => ({ kind: 'refused', reason });

export function watchTicketVerifier(
  keys: TicketKeys,
  { rememberedMax = KEYS_MAX }: { readonly rememberedMax?: number } = {},
): WatchTicketVerifier {
  const known = lookupMemory<KnownKey>(rememberedMax, ({ key }) => key !== undefined);

  async function keyOf(keyId: string, nowMs: number): Promise<KnownKey['key']> {
    const remembered = known.find(keyId);
    if (remembered !== undefined && isFresh(remembered, nowMs)) return remembered.key;
    const stored = await keys.find(keyId);
    const key = stored && { publicKey: keyObjectOf(stored.publicKey), throughMs: stored.throughMs };
    known.keep(keyId, { key, readAtMs: nowMs });
    return key;
  }

  return {
    async verify(ticket, target, nowMs) {
      if (ticket.length > TICKET_CHARACTERS_MAX) return refused('malformed ticket');
      const [, keyId = '', payload = '', signature = ''] = TICKET_FORMAT.exec(ticket) ?? [];
      if (keyId === '') return refused('malformed ticket');
      const key = await keyOf(keyId, nowMs);
      if (key === undefined || hasEnded(key, nowMs)) return refused('ticket has an unknown or expired key');
      const text = Buffer.from(signedText(payload, target), 'utf8');
      if (!verify(null, text, key.publicKey, Buffer.from(signature, 'base64url'))) {
        return refused('ticket has a wrong signature, or is for another watch');
      }
      const { user, caller, untilMs } = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as Payload;
      return nowMs <= untilMs ? { kind: 'valid', user, ...defined({ caller }) } : refused('ticket expired');
    },
  };
}
