import { beforeEach, describe, expect, it } from 'vitest';
import type { ProcessKey } from './process-key.ts';
import { processKeys } from './process-keys.ts';
import type { WatchTicketIssuer, WatchTicketVerifier } from './watch-tickets.ts';
import { TICKET_SECONDS, watchTicketIssuer, watchTicketVerifier } from './watch-tickets.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;
const user = { username: 'admin', groups: ['system:masters'] };
const target = '/api/v1/nodes?watch=true&resourceVersion=7';

let stored: Map<string, ProcessKey>;
let reads: string[];
let tickets: WatchTicketIssuer;
let verifier: WatchTicketVerifier;

const issuer = (into: Map<string, ProcessKey> = stored): WatchTicketIssuer =>
  watchTicketIssuer(processKeys(async (key) => void into.set(key.keyId, key)));
const newVerifier = (rememberedMax?: number): WatchTicketVerifier =>
  watchTicketVerifier(
    {
      async find(keyId) {
        reads.push(keyId);
        return stored.get(keyId);
      },
    },
    rememberedMax === undefined ? {} : { rememberedMax },
  );
const kindOf = async (ticket: string, nowMs = NOW_MS) => (await verifier.verify(ticket, target, nowMs)).kind;

beforeEach(() => {
  stored = new Map();
  reads = [];
  tickets = issuer();
  verifier = newVerifier();
});

describe('a watch ticket', () => {
  it('permits its user its watch for exactly one minute', async () => {
    const ticket = await tickets.issue({ user, target }, NOW_MS);
    expect(await verifier.verify(ticket, target, NOW_MS + TICKET_SECONDS * 1_000)).toEqual({ kind: 'valid', user });
    expect(await verifier.verify(ticket, target, NOW_MS + TICKET_SECONDS * 1_000 + 1)).toEqual({
      kind: 'refused',
      reason: 'ticket expired',
    });
  });

  it('names who impersonates its user', async () => {
    const caller = { username: 'system:serviceaccount:default:bot', uid: 'u', groups: [] };
    const ticket = await tickets.issue({ user, caller, target }, NOW_MS);
    expect(await verifier.verify(ticket, target, NOW_MS)).toEqual({ kind: 'valid', user, caller });
  });

  it('permits no other watch', async () => {
    const ticket = await tickets.issue({ user, target }, NOW_MS);
    expect((await verifier.verify(ticket, target.replace('nodes', 'pods'), NOW_MS)).kind).toBe('refused');
  });

  it('is refused if it is changed, truncated, of another key, empty or too long', async () => {
    const ticket = await tickets.issue({ user, target }, NOW_MS);
    const another = await issuer().issue({ user, target }, NOW_MS);
    const [keyId = '', payload = '', signature = ''] = ticket.split('.');
    const other = Buffer.from(JSON.stringify({ user: { username: 'root', groups: [] }, untilMs: NOW_MS + 1e9 }));
    const forged = [
      `${keyId}.${other.toString('base64url')}.${signature}`,
      `${keyId}.${payload}.`,
      `${payload}.${signature}`,
      payload,
      '',
      '..',
      `${ticket}.x`,
      `${ticket}=`,
      `x${ticket}`,
      `${keyId}.${payload.slice(0, 4)}=${payload.slice(4)}.${signature}`,
      `${keyId}.${payload}.${'A'.repeat(86)}`,
      `${another.split('.')[0]}.${payload}.${signature}`,
      `__proto__${'_'.repeat(34)}.${payload}.${signature}`,
      await issuer(new Map()).issue({ user, target }, NOW_MS),
      'x'.repeat(10_000),
      `${keyId}.${'x'.repeat(10_000)}.${signature}`,
    ];
    for (const each of forged) expect(await kindOf(each), each.slice(0, 60)).toBe('refused');
    expect(await kindOf(ticket)).toBe('valid');
  });

  it('is refused once its key has expired', async () => {
    const ticket = await tickets.issue({ user, target }, NOW_MS);
    const [key] = stored.values();
    stored.set(key!.keyId, { ...key!, throughMs: NOW_MS + 1_000 });
    expect(await kindOf(ticket, NOW_MS + 1_000)).toBe('valid');
    expect(await verifier.verify(ticket, target, NOW_MS + 1_001)).toEqual({
      kind: 'refused',
      reason: 'ticket has an unknown or expired key',
    });
  });
});

it('a ticket of the largest user that still fits is valid, a longer one is malformed', async () => {
  const ofLength = async (length: number) => {
    const bare = await tickets.issue({ user: { username: '', groups: [] }, target }, NOW_MS);
    const username = 'x'.repeat(Math.floor(((length - bare.length) * 3) / 4));
    return tickets.issue({ user: { username, groups: [] }, target }, NOW_MS);
  };
  const [longest, longer] = [await ofLength(6_000), await ofLength(6_004)];
  expect([longest.length > 5_995, longest.length <= 6_000, longer.length > 6_000]).toEqual([true, true, true]);
  expect(await kindOf(longest)).toBe('valid');
  expect(await verifier.verify(longer, target, NOW_MS)).toEqual({ kind: 'refused', reason: 'malformed ticket' });
});

describe('the keys of tickets', () => {
  it('are stored once per process, by the first ticket', async () => {
    await Promise.all([1, 2, 3].map(() => tickets.issue({ user, target }, NOW_MS)));
    await tickets.issue({ user, target }, NOW_MS + 11 * HOUR_MS);
    expect(stored.size).toBe(1);
  });

  it('are read once, and again after an hour: a removed key is then refused', async () => {
    const at = async (nowMs: number) => kindOf(await tickets.issue({ user, target }, nowMs), nowMs);
    for (const seconds of [0, 60, 3_599]) expect(await at(NOW_MS + seconds * 1_000)).toBe('valid');
    expect(reads).toHaveLength(1);
    stored.clear();
    expect(await at(NOW_MS + 3_599_999)).toBe('valid');
    expect(await at(NOW_MS + 3_600_000)).toBe('refused');
    expect(reads).toHaveLength(2);
  });

  it('that do not exist are read again after five seconds', async () => {
    const ticket = await tickets.issue({ user, target }, NOW_MS);
    const [key] = stored.values();
    stored.clear();
    expect([await kindOf(ticket), await kindOf(ticket, NOW_MS + 4_999)]).toEqual(['refused', 'refused']);
    expect(reads).toHaveLength(1);
    stored.set(key!.keyId, key!);
    expect(await kindOf(ticket, NOW_MS + 5_000)).toBe('valid');
  });

  it('are read again after the clock was set back: no removed key stays valid, and no new key is missing', async () => {
    const earlierMs = NOW_MS - 2 * HOUR_MS;
    const ticket = await tickets.issue({ user, target }, earlierMs);
    const [key] = stored.values();
    expect(await kindOf(ticket, NOW_MS)).toBe('refused');
    stored.clear();
    expect(await kindOf(ticket, earlierMs)).toBe('refused');
    stored.set(key!.keyId, key!);
    expect(await kindOf(ticket, earlierMs - 5_000)).toBe('valid');
    expect(reads).toHaveLength(3);
  });

  it('stay cached during a flood of unknown ids', async () => {
    verifier = newVerifier(2);
    const ticket = await tickets.issue({ user, target }, NOW_MS);
    await kindOf(ticket);
    for (let index = 0; index < 5; index += 1) {
      await kindOf(await issuer(new Map()).issue({ user, target }, NOW_MS));
    }
    expect(await kindOf(ticket)).toBe('valid');
    expect(reads).toHaveLength(6);
  });
});
