import { rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import dbus, { type MessageBus } from '@particle/dbus-next';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { missingPackages, startBus } from '../../../test/support/mock-system-bus.ts';
import { until } from '../../../test/support/until.ts';
import { type BusSignal, connectSystemBus, type SystemBus, SystemBusError } from './system-bus.ts';

const missing = missingPackages();
const why = missing.length === 0 ? '' : ` (skipped: not installed: ${missing.join(', ')})`;
const DAEMON = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
};
const withinMs = 20_000;

describe.skipIf(missing.length > 0)(`a connection to the message bus${why}`, () => {
  let running: ReturnType<typeof startBus>;
  const closers: (() => void)[] = [];

  beforeAll(async () => {
    running = startBus();
    const first = await until(() => connectSystemBus(running.address, { timeoutMs: 1_000 }), { withinMs });
    first.close();
  });
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });
  afterAll(() => {
    running.daemon.kill('SIGKILL');
    rmSync(running.folder, { recursive: true });
  });

  async function connected(address = running.address, pingIntervalMs?: number): Promise<SystemBus> {
    const bus = await connectSystemBus(address, { timeoutMs: 2_000, pingIntervalMs });
    closers.push(() => bus.close());
    return bus;
  }

  /** Another program on the bus, with its name there. It answers no call. */
  async function stranger(): Promise<{ bus: MessageBus; name: string }> {
    const bus = dbus.sessionBus({ busAddress: running.address, authMethods: ['EXTERNAL'] });
    await new Promise<void>((resolve) => bus.on('connect', resolve));
    closers.push(() => bus.disconnect());
    bus.addMethodHandler(() => true);
    return { bus, name: (bus as MessageBus & { name: string }).name };
  }

  /** Between a client and the bus. `silence` lets the bus say no more. */
  async function relay() {
    const path = join(running.folder, `relay-${Math.random()}`);
    let pings = 0;
    const sockets = new Set<Socket>();
    const server = createServer((client) => {
      const onward = connect(join(running.folder, 'bus'));
      for (const socket of [client, onward]) sockets.add(socket.on('error', () => undefined));
      client.on('data', (data) => {
        if (data.includes('Ping')) pings += 1;
        onward.write(data);
      });
      onward.on('data', (data) => client.write(data));
      client.on('close', () => onward.destroy());
    });
    await new Promise<void>((resolve) => server.listen(path, resolve));
    const cut = (): void => {
      for (const socket of sockets) socket.destroy();
    };
    closers.push(() => {
      cut();
      server.close();
    });
    const silence = (): void => {
      for (const socket of sockets) socket.removeAllListeners('data');
    };
    return { address: `unix:path=${path}`, pings: () => pings, silence };
  }

  it('returns the values of an answer, also when it has none', async () => {
    const bus = await connected();
    const body = ['org.freedesktop.DBus'];
    expect(await bus.call({ ...DAEMON, member: 'NameHasOwner', signature: 's', body })).toEqual([true]);
    const ping = { ...DAEMON, interface: 'org.freedesktop.DBus.Peer', member: 'Ping' };
    expect(await bus.call(ping)).toEqual([]);
  });

  it('reports a call that is refused, and one that is not answered in time', async () => {
    const bus = await connected();
    const refused = (await bus.call({ ...DAEMON, member: 'Nothing' }).catch((error: unknown) => error)) as Error;
    expect(refused).toBeInstanceOf(SystemBusError);
    expect([refused.name, refused.message]).toEqual([
      'SystemBusError',
      expect.stringMatching(/^org.freedesktop.DBus.Nothing: .*Nothing/),
    ]);
    expect(refused.cause).toBeInstanceOf(Error);
    const { name } = await stranger();
    const hasty = await connectSystemBus(running.address, { timeoutMs: 100 });
    closers.push(() => hasty.close());
    await expect(hasty.call({ ...DAEMON, destination: name, member: 'Wait' })).rejects.toThrow(
      'org.freedesktop.DBus.Wait: no answer in 100 ms',
    );
    expect(hasty.ended.aborted).toBe(false);
  });

  it('receives broadcasts alone, until it is unsubscribed', async () => {
    const bus = await connected();
    await bus.call({ ...DAEMON, member: 'AddMatch', signature: 's', body: [`type='signal'`] });
    const seen: string[] = [];
    const unsubscribe = bus.onSignal(
      ({ member, body }: BusSignal) => void seen.push(`${member} ${body[0] ?? ''}`.trim()),
    );
    const { bus: sender } = await stranger();
    const [id] = await bus.call({ ...DAEMON, member: 'GetNameOwner', signature: 's', body: ['org.freedesktop.DBus'] });
    expect(id).toBe('org.freedesktop.DBus');
    const signal = (member: string, destination?: string) => {
      const message = dbus.Message.newSignal('/x', 'test.X', member, 's', ['a']);
      if (destination !== undefined) message.destination = destination;
      sender.send(message);
    };
    const others = (await bus.call({ ...DAEMON, member: 'ListNames' }))[0] as string[];
    for (const name of others.filter((each) => each.startsWith(':'))) signal('Direct', name);
    signal('First');
    await until(() => seen.includes('First a'), { withinMs });
    unsubscribe();
    signal('Second');
    const barrier = new Promise<void>((resolve) => {
      const stop = bus.onSignal(({ member }) => {
        if (member === 'Third') resolve(stop());
      });
    });
    signal('Third');
    await barrier;
    expect(seen.filter((each) => !each.startsWith('Name'))).toEqual(['First a']);
  });

  it('stays open while pings are answered, and ends when they are not', async () => {
    const between = await relay();
    const bus = await connectSystemBus(between.address, { timeoutMs: 200, pingIntervalMs: 20 });
    closers.push(() => bus.close());
    await until(() => between.pings() > 3, { withinMs });
    await bus.call({ ...DAEMON, member: 'GetId' });
    expect(bus.ended.aborted).toBe(false);
    between.silence();
    await until(() => bus.ended.aborted, { withinMs });
    await expect(bus.call({ ...DAEMON, member: 'GetId' })).rejects.toMatchObject({
      message: `org.freedesktop.DBus.GetId: the connection to ${between.address} ended`,
      cause: { message: 'Ping: no answer in 200 ms' },
    });
    const pings = between.pings();
    await connected(between.address);
    expect(between.pings()).toBe(pings);
  });

  it('that ends fails the calls that wait', async () => {
    const between = await relay();
    const bus = await connected(between.address);
    const { name } = await stranger();
    const waiting = bus.call({ ...DAEMON, destination: name, member: 'Wait' });
    bus.close();
    bus.close();
    expect(bus.ended.aborted).toBe(true);
    await expect(waiting).rejects.toThrow(`the connection to ${between.address} ended`);
  });

  it('disconnects when it is closed', async () => {
    const { bus: watcher } = await stranger();
    const names = async () => {
      const answer = await watcher.call(new dbus.Message({ ...DAEMON, member: 'ListNames' }));
      return (answer?.body[0] as string[] | undefined)?.length ?? 0;
    };
    const before = await names();
    const bus = await connected();
    await until(async () => (await names()) === before + 1, { withinMs });
    bus.close();
    await until(async () => (await names()) === before, { withinMs });
  });

  it('is refused where there is no bus, and closed where a server does not answer', async () => {
    const nowhere = `unix:path=${running.folder}/nothing`;
    await expect(connectSystemBus(nowhere, { timeoutMs: 2_000 })).rejects.toMatchObject({
      message: `the connection to ${nowhere} ended`,
      cause: { code: 'ENOENT' },
    });
    const path = join(running.folder, 'silent');
    let isClosed = false;
    const server = createServer((socket) => {
      socket.resume().on('close', () => {
        isClosed = true;
      });
    });
    await new Promise<void>((resolve) => server.listen(path, resolve));
    closers.push(() => server.close());
    await expect(connectSystemBus(`unix:path=${path}`, { timeoutMs: 50 })).rejects.toThrow(
      `connecting to unix:path=${path}: no answer in 50 ms`,
    );
    await until(() => isClosed, { withinMs });
  });
});
