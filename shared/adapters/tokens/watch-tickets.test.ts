import { describe, expect, it } from 'vitest';
import { TICKET_SECONDS, watchTickets } from './watch-tickets.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const user = { username: 'admin', groups: ['system:masters'] };
const target = '/api/v1/nodes?watch=true&resourceVersion=7';
const tickets = watchTickets('secret');

describe('a watch ticket', () => {
  it('admits its user to its watch, to the last millisecond of its minute', () => {
    const ticket = tickets.issue({ user, target }, NOW_MS);
    expect(tickets.verify(ticket, target, NOW_MS + TICKET_SECONDS * 1_000)).toEqual({ kind: 'valid', user });
    expect(tickets.verify(ticket, target, NOW_MS + TICKET_SECONDS * 1_000 + 1)).toEqual({
      kind: 'refused',
      reason: 'ticket expired',
    });
  });

  it('opens no other watch', () => {
    const ticket = tickets.issue({ user, target }, NOW_MS);
    expect(tickets.verify(ticket, target.replace('nodes', 'pods'), NOW_MS).kind).toBe('refused');
  });

  it('is refused when changed, cut, foreign, empty or endless', () => {
    const ticket = tickets.issue({ user, target }, NOW_MS);
    const [payload = '', signature = ''] = ticket.split('.');
    const other = Buffer.from(JSON.stringify({ user: { username: 'root', groups: [] }, untilMs: NOW_MS + 1e9 }));
    const forged = [
      `${other.toString('base64url')}.${signature}`,
      `${payload}.`,
      payload,
      '',
      '.',
      `${ticket}.x`,
      watchTickets('another').issue({ user, target }, NOW_MS),
      'x'.repeat(10_000),
    ];
    for (const each of forged) expect(tickets.verify(each, target, NOW_MS).kind, each.slice(0, 40)).toBe('refused');
  });
});
