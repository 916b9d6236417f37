import { createHmac, timingSafeEqual } from 'node:crypto';
import type { UserInfo } from '../../ports/authenticator.ts';
import type { WatchTickets } from '../../ports/watch-tickets.ts';

/** From redirect to arrival; clients follow at once. */
export const TICKET_SECONDS = 60;
/** A user with a thousand groups still fits; API Gateway and function URLs bound a request line at 10 KB and more. */
const TICKET_CHARACTERS_MAX = 6_000;

interface Payload {
  readonly user: UserInfo;
  /** Last millisecond it holds. */
  readonly untilMs: number;
}

/**
 * `payload.signature`, base64url: the user and the end of validity, signed together with the path and query it is for
 * (HMAC-SHA-256). The target is not in the ticket, so a ticket for one watch opens no other.
 */
export function watchTickets(secret: string): WatchTickets {
  const sign = (payload: string, target: string): Buffer =>
    createHmac('sha256', secret).update(`${payload.length}.${payload}.${target}`).digest();
  return {
    issue({ user, target }, nowMs) {
      const payload = Buffer.from(JSON.stringify({ user, untilMs: nowMs + TICKET_SECONDS * 1_000 })).toString(
        'base64url',
      );
      return `${payload}.${sign(payload, target).toString('base64url')}`;
    },
    verify(ticket, target, nowMs) {
      const [payload = '', signature = '', ...more] = ticket.split('.');
      if (ticket.length > TICKET_CHARACTERS_MAX || more.length > 0)
        return { kind: 'refused', reason: 'malformed ticket' };
      const given = Buffer.from(signature, 'base64url');
      const expected = sign(payload, target);
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
        return { kind: 'refused', reason: 'ticket is not ours, or for another watch' };
      }
      const { user, untilMs } = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as Payload;
      return nowMs <= untilMs ? { kind: 'valid', user } : { kind: 'refused', reason: 'ticket expired' };
    },
  };
}
