import { describe, expect, it } from 'vitest';
import type { PreshutdownService } from '../../ports/preshutdown-service.ts';
import { PreshutdownError, preshutdownSignal } from './preshutdown.ts';

function service(over: Partial<PreshutdownService> = {}) {
  const calls: string[] = [];
  const announced = Promise.withResolvers<void>();
  const here: PreshutdownService = {
    name: 'nodekeeper-agent',
    preshutdown: announced.promise,
    preshutdownTimeoutMs: () => 180_000,
    setPreshutdownTimeout: (milliseconds) => void calls.push(`time-out ${milliseconds}`),
    dependencies: () => ['tcpip'],
    readOrder: () => ['other'],
    writeOrder: (order) => void calls.push(`order ${order.join(' ')}`),
    allowPreshutdown: (milliseconds) => void calls.push(`allow ${milliseconds}`),
    async end(code) {
      calls.push(`end ${code}`);
    },
    ...over,
  };
  return { calls, announce: () => announced.resolve(), signal: preshutdownSignal(here) };
}

async function announcements(signal: ReturnType<typeof preshutdownSignal>, stop: AbortSignal): Promise<boolean[]> {
  const seen: boolean[] = [];
  for await (const each of signal.watch(stop)) seen.push(each);
  return seen;
}

describe('the shutdown of a service of Windows', () => {
  it('waits as long as its time-out says, which can be raised', async () => {
    const { signal, calls } = service();
    expect(await signal.delayMaxMs()).toBe(180_000);
    await signal.raiseDelayMax(240_000);
    expect(calls).toEqual(['time-out 240000']);
  });

  it('is announced before its dependencies are shut down, if it has any', async () => {
    const first = service();
    await first.signal.hold();
    expect(first.calls).toEqual(['order other nodekeeper-agent tcpip', 'allow 180000']);
    const alone = service({ dependencies: () => [] });
    await alone.signal.hold();
    expect(alone.calls).toEqual(['allow 180000']);
  });

  it('ends the service when it is released, unless the agent alone stops', async () => {
    const { signal, calls, announce } = service();
    const lock = await signal.hold();
    calls.length = 0;
    await lock.release();
    expect(calls).toEqual([]);
    announce();
    expect(await announcements(signal, new AbortController().signal)).toEqual([true]);
    await lock.release();
    expect(calls).toEqual(['end 0']);
  });

  it('is not watched further when the agent stops', async () => {
    const { signal } = service();
    const stop = new AbortController();
    const watching = announcements(signal, stop.signal);
    stop.abort();
    expect(await watching).toEqual([]);
    expect(await announcements(signal, stop.signal)).toEqual([]);
  });

  it('does not start in a process that is no service', async () => {
    const signal = preshutdownSignal(undefined);
    const why = 'kubelet is NOT running as a Windows service';
    for (const each of [signal.delayMaxMs(), signal.raiseDelayMax(1), signal.hold()]) {
      await expect(each).rejects.toThrow(new PreshutdownError(why));
    }
    await expect(announcements(signal, new AbortController().signal)).rejects.toThrow(why);
  });

  it('says what could not be done', async () => {
    const refuse = () => {
      throw new Error('Access is denied');
    };
    const { signal } = service({ preshutdownTimeoutMs: refuse, setPreshutdownTimeout: refuse });
    const message = 'Could not query the preshutdown time-out: Access is denied';
    await expect(signal.delayMaxMs()).rejects.toMatchObject({ message, cause: { message: 'Access is denied' } });
    await expect(signal.raiseDelayMax(1)).rejects.toThrow('Could not update the preshutdown time-out');
    await expect(service({ dependencies: refuse }).signal.hold()).rejects.toThrow('query the dependencies');
    await expect(service({ readOrder: refuse }).signal.hold()).rejects.toThrow('read PreshutdownOrder');
    await expect(service({ writeOrder: refuse }).signal.hold()).rejects.toThrow('write PreshutdownOrder');
  });
});
