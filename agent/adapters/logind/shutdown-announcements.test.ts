import { describe, expect, it } from 'vitest';
import type { Log } from '../../../shared/observability/log.ts';
import { settle } from '../../../test/support/stepped-time.ts';
import { shutdownAnnouncements } from './shutdown-announcements.ts';
import type { BusSignal, SystemBus } from './system-bus.ts';

function listening({ refuses = false, until = [] as AbortSignal[] } = {}) {
  const ended = new AbortController();
  const calls: string[] = [];
  const warned: string[] = [];
  const listeners = new Set<(signal: BusSignal) => void>();
  const bus: SystemBus = {
    async call({ member, body = [] }) {
      calls.push(`${member} ${/member='(\w+)'/.exec(String(body[0]))?.[1]}`);
      if (refuses) throw new Error('not allowed');
      return [];
    },
    onSignal(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    ended: ended.signal,
    close: () => {},
  };
  const log = { warn: (message: string) => void warned.push(message), debug: () => {} } as Partial<Log> as Log;
  const announced = shutdownAnnouncements(bus, 'PrepareForShutdown', log, until);
  const send = (more: Partial<BusSignal> = {}) => {
    const path = '/org/freedesktop/login1';
    const signal = { path, interface: 'org.freedesktop.login1.Manager', member: 'PrepareForShutdown', body: [true] };
    for (const listener of listeners) listener({ ...signal, ...more });
  };
  return { announced, send, ended, calls, warned, listeners };
}

describe('announcements of a shutdown', () => {
  it('are those of logind, in order', async () => {
    const { announced, send, calls, warned } = listening();
    const first = announced.next();
    await settle();
    expect(calls).toEqual(['AddMatch PrepareForShutdown']);
    for (const other of [{ path: '/x' }, { interface: 'x' }, { member: 'PrepareForSleep' }]) send(other);
    send({ body: ['yes'] });
    send();
    send({ body: [false] });
    expect([(await first).value, (await announced.next()).value]).toEqual([true, false]);
    expect(warned).toEqual(['PrepareForShutdown without a boolean is ignored']);
    const third = announced.next();
    await settle();
    send();
    expect((await third).value).toBe(true);
  });

  it('that are not read are 64 at most, the newest', async () => {
    const { announced, send } = listening();
    const first = announced.next();
    await settle();
    send({ body: [false] });
    await first;
    send({ body: [false] });
    for (let count = 0; count < 64; count += 1) send();
    const read: boolean[] = [];
    for (let count = 0; count < 64; count += 1) read.push((await announced.next()).value as boolean);
    expect(read).not.toContain(false);
  });

  it('end at a stop, and with the connection, which has no subscription any more', async () => {
    const stop = new AbortController();
    const stopped = listening({ until: [stop.signal] });
    const first = stopped.announced.next();
    await settle();
    stop.abort();
    expect(await first).toEqual({ done: true, value: undefined });
    expect(stopped.calls).toEqual(['AddMatch PrepareForShutdown', 'RemoveMatch PrepareForShutdown']);
    expect(stopped.listeners.size).toBe(0);
    const cut = listening();
    const next = cut.announced.next();
    await settle();
    cut.ended.abort();
    expect(await next).toEqual({ done: true, value: undefined });
    expect([cut.calls, cut.listeners.size]).toEqual([['AddMatch PrepareForShutdown'], 0]);
  });

  it('are a fault where they cannot be subscribed to', async () => {
    const { announced, listeners } = listening({ refuses: true });
    await expect(announced.next()).rejects.toThrow('not allowed');
    expect(listeners.size).toBe(0);
  });
});
