/**
 * `key id.payload.signature`, base64url: the user and the end of validity, signed together with the path and query they are for
 * (Ed25519). The target is not in the ticket, so a ticket for one watch opens no other.
 *
 * The API signs with the key of its process and stores the public half; the watch function reads that once and can make no
 * ticket (docs/decisions/0009-keys-of-our-own-processes.md).
 */
import { type KeyObject, verify } from 'node:crypto';
import { hasEnded } from '../../domain/access/process-key.ts';
import type { UserInfo } from '../../domain/access/user-info.ts';
import type { TicketKeys } from '../../ports/process-keys.ts';
import type { TicketVerdict, WatchTicketIssuer, WatchTicketVerifier } from '../../ports/watch-tickets.ts';
import { lookupMemory } from './bounded-memory.ts';
import type { ProcessKeys } from './process-keys.ts';
import { keyObjectOf } from './public-keys.ts';

/** From redirect to arrival; clients follow at once. */
export const TICKET_SECONDS = 60;
/** A user with a thousand groups still fits; API Gateway and function URLs bound a request line at 10 KB and more. */
const TICKET_CHARACTERS_MAX = 6_000;
/** A key that was removed from the table opens watches here for so long at most. Milliseconds. */
const KEYS_LIVE_MS = 3_600_000;
/** That there is no such key is believed for so long. Milliseconds. */
const ABSENT_LIVES_MS = 5_000;
/** Keys remembered at most, and as many ids of none. */
const KEYS_MAX = 1_000;

interface Payload {
  readonly user: UserInfo;
  /** Last millisecond it holds. */
  readonly untilMs: number;
}

/** The id is that of an Ed25519 key, as is the length of the signature. */
const FORM = /^([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{86})$/;

/** With its length before it, no part of the payload can be taken for the target. */
const signedText = (payload: string, target: string): string => `watch ticket ${payload.length}.${payload}.${target}`;

export const watchTicketIssuer = (keys: ProcessKeys): WatchTicketIssuer => ({
  async issue({ user, target }, nowMs) {
    const key = await keys.current(nowMs);
    const content: Payload = { user, untilMs: nowMs + TICKET_SECONDS * 1_000 };
    const payload = Buffer.from(JSON.stringify(content)).toString('base64url');
    return `${key.keyId}.${payload}.${key.sign(signedText(payload, target))}`;
  },
});

interface KnownKey {
  /** undefined: there was none. */
  readonly key: { readonly publicKey: KeyObject; readonly throughMs: number } | undefined;
  readonly readAtMs: number;
}

/** One that was read in the future was read before the clock was set back. */
const isFresh = ({ key, readAtMs }: KnownKey, nowMs: number): boolean =>
  Math.abs(nowMs - readAtMs) < (key === undefined ? ABSENT_LIVES_MS : KEYS_LIVE_MS);

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
      const [, keyId = '', payload = '', signature = ''] = FORM.exec(ticket) ?? [];
      if (keyId === '') return refused('malformed ticket');
      const key = await keyOf(keyId, nowMs);
      if (key === undefined || hasEnded(key, nowMs)) return refused('ticket is of no key of ours');
      const text = Buffer.from(signedText(payload, target), 'utf8');
      if (!verify(null, text, key.publicKey, Buffer.from(signature, 'base64url'))) {
        return refused('ticket is not ours, or for another watch');
      }
      const { user, untilMs } = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as Payload;
      return nowMs <= untilMs ? { kind: 'valid', user } : refused('ticket expired');
    },
  };
}
