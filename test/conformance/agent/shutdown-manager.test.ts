/** Areas GI, GT, GE, GF and GW: the graceful shutdown as it runs, on virtual time, with logind and on Windows. */

import { describe, expect, it } from 'vitest';
import { shutdownAnnouncements } from '../../../agent/adapters/logind/shutdown-announcements.ts';
import type { BusSignal } from '../../../agent/adapters/logind/system-bus.ts';
import { preshutdownSignal } from '../../../agent/adapters/windows/preshutdown.ts';
import { GracefulShutdown, type ShutdownDependencies } from '../../../agent/app/shutdown/graceful-shutdown.ts';
import { ShutdownPhase } from '../../../agent/app/shutdown/shutdown-phase.ts';
import type { PriorityGrace } from '../../../agent/config.ts';
import type { ShutdownSignal } from '../../../agent/ports/shutdown-signal.ts';
import { LOGIND_SHUTDOWN, logindDropIn } from '../../../agent/rules/shutdown-start.ts';
import type { PodStatus } from '../../../agent/rules/shutdown-status.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import type { Log } from '../../../shared/observability/log.ts';
import { silentMeter } from '../../support/agent-api.ts';
import { SteppedTime, settle } from '../../support/stepped-time.ts';
import { MemoryService } from '../../support/windows-service.ts';

const NOON_MS = Date.UTC(2024, 4, 1, 12);
const START = 'kubelet_graceful_shutdown_start_time_seconds';
const END = 'kubelet_graceful_shutdown_end_time_seconds';

const bucket = (priority: number, shutdownGracePeriodSeconds: number): PriorityGrace => ({
  priority,
  shutdownGracePeriodSeconds,
});
const pod = (name: string, priority: number, over: Record<string, unknown> = {}): KubeObject => ({
  metadata: { name },
  spec: { priority, ...over },
  status: { phase: 'Running' },
});

/** A system that grants delays and announces shutdowns, and a runtime with pods that terminate slowly. */
class Machine {
  readonly time = new SteppedTime(NOON_MS);
  readonly history: string[] = [];
  readonly logged: string[] = [];
  readonly gauges = new Map<string, number>();
  readonly stop = new AbortController();
  /** Answers to readings of the delay; the last one stays. Milliseconds. */
  delaysMs: number[] = [120_000];
  readings = 0;
  locks = 0;
  holdFails = false;
  watchFails = false;
  pods: KubeObject[] = [];
  killTakesMs = 0;
  unmountTakesMs = 0;
  stateText: string | undefined;
  stateWrites: string[] = [];
  writeFails = false;
  #announce: ((next: boolean | 'end') => void) | undefined;
  readonly manager: GracefulShutdown;
  running: Promise<void> | undefined;
  /** Of Windows alone. */
  readonly service = new MemoryService();

  constructor(buckets: readonly PriorityGrace[], over: Partial<ShutdownDependencies> = {}) {
    const note = (text: string): void => this.note(text);
    const log = (message: string, fields: Record<string, unknown> = {}): void => {
      this.logged.push([message, ...(fields['error'] === undefined ? [] : [fields['error']])].join(': '));
    };
    const keep: Log = { debug: log, info: log, warn: log, error: log };
    this.manager = new GracefulShutdown({
      phase: new ShutdownPhase(),
      buckets,
      time: this.time,
      log: keep,
      meter: { ...silentMeter, gauge: (name, value) => this.gauges.set(name, value) },
      shutdownSignal: this.signal(),
      activePods: () => this.pods,
      killPod: async (each, graceSeconds, change: (status: PodStatus) => PodStatus) => {
        note(`kill ${each.metadata.name} ${graceSeconds}`);
        await this.time.sleep(this.killTakesMs);
        note(`${each.metadata.name} ${change(each.status ?? {})['phase']}`);
      },
      volumesUnmounted: async (_pods, signal) => this.time.sleep(this.unmountTakesMs, signal),
      recordEvent: ({ type, reason, message }) => note(`${type} ${reason} ${message}`),
      reportStatus: async () => {
        note('status');
      },
      drainEvents: async () => {},
      stateFile: {
        read: async () => this.stateText,
        write: async (text) => {
          if (this.writeFails) throw new Error('disk full');
          this.stateWrites.push(text);
        },
      },
      ...over,
    });
  }

  /** The system that announces the shutdown. */
  protected signal(): ShutdownSignal {
    return {
      rules: LOGIND_SHUTDOWN,
      delayMaxMs: async () => this.nextDelayMs(),
      raiseDelayMax: async (delayMs) => {
        this.note(`raise ${logindDropIn(delayMs).trim().split('\n').at(-1)}`);
      },
      hold: async () => {
        if (this.holdFails) throw new Error('no lock');
        this.locks += 1;
        let held = true;
        return {
          release: async () => {
            if (held) this.locks -= 1;
            held = false;
            this.note('released');
          },
        };
      },
      watch: (signal) => this.#watch(signal),
    };
  }

  nextDelayMs(): number {
    this.readings += 1;
    return (this.delaysMs.length > 1 ? this.delaysMs.shift() : this.delaysMs[0]) ?? 0;
  }

  protected note(text: string): void {
    this.history.push(`${this.seconds()} ${text}`);
  }

  seconds(): number {
    return (this.time.nowMs() - NOON_MS) / 1_000;
  }

  async *#watch(signal: AbortSignal): AsyncGenerator<boolean, void, undefined> {
    if (this.watchFails) throw new Error('no subscription');
    const unread: (boolean | 'end')[] = [];
    let wake = (): void => undefined;
    this.#announce = (next) => {
      unread.push(next);
      wake();
    };
    signal.addEventListener('abort', () => this.#announce?.('end'));
    for (;;) {
      const next = unread.shift();
      if (next === 'end') return;
      if (next !== undefined) yield next;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  }

  async start(): Promise<void> {
    this.running = this.manager.run(this.stop.signal);
    await settle();
  }
  async announce(next: boolean | 'end'): Promise<void> {
    this.#announce?.(next);
    await settle();
  }
  /** Lines of the history that begin with a time and one of the words. */
  lines(...words: string[]): string[] {
    return this.history.filter((line) => words.some((word) => line.split(' ').slice(1).join(' ').startsWith(word)));
  }
}

/** The same with Windows, which announces a shutdown to a service. */
class WindowsMachine extends Machine {
  protected override signal(): ShutdownSignal {
    const { service } = this;
    service.preshutdownTimeoutMs = () => this.nextDelayMs();
    service.setPreshutdownTimeout = (timeoutMs) => this.note(`raise ${timeoutMs}`);
    service.end = async () => this.note('released');
    return preshutdownSignal(service);
  }

  override async announce(): Promise<void> {
    this.service.shutDown();
    await settle();
  }
}

type System = new (buckets: readonly PriorityGrace[], over?: Partial<ShutdownDependencies>) => Machine;

const SYSTEMS: readonly [string, System][] = [
  ['logind', Machine],
  ['Windows', WindowsMachine],
];

async function startedOn<Started extends Machine>(
  system: new (buckets: readonly PriorityGrace[]) => Started,
  buckets: readonly PriorityGrace[],
  prepare: (machine: Started) => void = () => {},
): Promise<Started> {
  const machine = new system(buckets);
  prepare(machine);
  await machine.start();
  return machine;
}

const started = (buckets: readonly PriorityGrace[], prepare?: (machine: Machine) => void): Promise<Machine> =>
  startedOn(Machine, buckets, prepare);

describe('the delay at the start', () => {
  it.each<[string, number, number[], number, number[], string | undefined]>([
    ['GI-01 more than enough', 30, [40], 1, [], undefined],
    ['GI-05 exactly enough', 5, [5], 1, [], undefined],
    ['GI-09 exactly enough for more', 30, [30], 1, [], undefined],
    ['GI-07 granted at the last reading', 90, [30, 30, 30, 30, 30, 90], 6, [100, 200, 400, 800], '90'],
    ['GI-11 granted at the second reading', 30, [5, 5, 45], 3, [100], '30'],
  ])('%s', async (_name, requested, delays, readings, waits, written) => {
    const machine = await started([bucket(0, requested)], (each) => {
      each.delaysMs = delays.map((seconds) => seconds * 1_000);
    });
    await machine.time.pass(5_000);
    expect(machine.lines('raise')).toEqual(written === undefined ? [] : [`0 raise InhibitDelayMaxSec=${written}`]);
    expect([machine.readings, machine.time.waits, machine.locks]).toEqual([readings, waits, 1]);
    expect(machine.logged).toEqual([]);
  });

  it('GI-03 never granted', async () => {
    const machine = await started([bucket(0, 30)], (each) => {
      each.delaysMs = [5_000];
    });
    await machine.time.pass(5_000);
    await machine.running;
    expect(machine.lines('raise')).toEqual(['0 raise InhibitDelayMaxSec=30']);
    expect([machine.readings, machine.locks]).toEqual([6, 0]);
    expect(machine.logged).toEqual([
      'Failed to start node shutdown manager: node shutdown manager was timed out after 5 attempts waiting for logind InhibitDelayMaxSec to update to 30s (ShutdownGracePeriod), current value is 5s',
    ]);
  });
});

describe.each(SYSTEMS)('order and waiting with %s', (_name, system) => {
  const TWO = [bucket(1, 10), bucket(2, 20)];
  const shutdown = async (buckets: readonly PriorityGrace[], prepare: (machine: Machine) => void): Promise<Machine> => {
    const machine = await startedOn(system, buckets, (each) => {
      each.pods = [pod('a', 1), pod('b', 2)];
      prepare(each);
    });
    await machine.announce(true);
    await machine.time.pass(60_000);
    return machine;
  };
  const timeOuts = ({ logged }: Machine): number =>
    logged.filter((line) => line === 'Shutdown manager pod killing time out').length;

  it('GT-01 the next group begins when the one before is done', async () => {
    const machine = await shutdown(TWO, (each) => {
      each.killTakesMs = 5_000;
    });
    expect(machine.lines('kill', 'released')).toEqual(['0 kill a 10', '5 kill b 20', '10 released']);
    expect(timeOuts(machine)).toBe(0);
  });

  it('GT-03 an empty group uses no time', async () => {
    const machine = await shutdown(TWO, (each) => {
      each.pods = [pod('b', 2)];
    });
    expect(machine.lines('kill')).toEqual(['0 kill b 20']);
  });

  it('GT-05 volumes are waited for', async () => {
    const machine = await shutdown(TWO, (each) => {
      each.killTakesMs = 3_000;
      each.unmountTakesMs = 4_000;
    });
    expect(machine.lines('kill')).toEqual(['0 kill a 10', '7 kill b 20']);
  });

  it('GT-07 a group without time is signalled and not awaited', async () => {
    const machine = await shutdown([bucket(1, 0), bucket(2, 20)], (each) => {
      each.killTakesMs = 5_000;
    });
    expect(machine.lines('kill')).toEqual(['0 kill a 0', '0 kill b 20']);
  });

  it('leaves what does not end in its time, and says so', async () => {
    const machine = await shutdown(TWO, (each) => {
      each.killTakesMs = 15_000;
    });
    expect(machine.lines('kill', 'released')).toEqual(['0 kill a 10', '10 kill b 20', '25 released']);
    expect(timeOuts(machine)).toBe(1);
  });

  it('continues when a pod cannot be killed, or its volumes cannot be unmounted', async () => {
    const machine = new system(TWO, {
      killPod: async () => {
        throw new Error('no runtime');
      },
      volumesUnmounted: async () => {
        throw new Error('busy');
      },
    });
    machine.pods = [pod('a', 1)];
    await machine.start();
    await machine.announce(true);
    await settle();
    expect(machine.lines('released')).toEqual(['0 released']);
    expect(machine.logged).toEqual([
      'Shutdown manager failed killing pod: no runtime',
      'Failed while waiting for all the volumes belonging to Pods in this group to unmount: busy',
    ]);
  });
});

describe('what is announced', () => {
  const ONE = [bucket(0, 10)];

  it('GE-01 a shutdown', async () => {
    const machine = await started(ONE, (each) => {
      each.pods = [pod('a', 0)];
      each.killTakesMs = 2_000;
    });
    await machine.announce(true);
    expect(machine.manager.phase.isShuttingDown).toBe(true);
    expect(machine.locks).toBe(1);
    expect(machine.manager.phase.admit()).toEqual({
      kind: 'refused',
      reason: 'NodeShutdown',
      message: 'Pod was rejected as the node is shutting down.',
    });
    await machine.time.pass(10_000);
    expect(machine.history).toEqual([
      '0 Normal NodeShutdown Shutdown manager detected shutdown event',
      '0 status',
      '0 kill a 10',
      '2 a Failed',
      '2 released',
    ]);
    expect(machine.locks).toBe(0);
  });

  it('GE-03 a cancellation', async () => {
    const machine = await started(ONE, (each) => {
      each.pods = [pod('a', 0)];
    });
    await machine.announce(true);
    await machine.time.pass(1_000);
    await machine.announce(false);
    expect(machine.history.at(-1)).toBe('1 Normal NodeShutdown Shutdown manager detected shutdown cancellation');
    expect([machine.manager.phase.isShuttingDown, machine.locks]).toEqual([false, 1]);
    expect(machine.lines('kill')).toHaveLength(1);
    expect(machine.lines('status')).toHaveLength(1);
  });

  it('GE-05 admission after a cancellation', async () => {
    const machine = await started(ONE);
    await machine.announce(true);
    await machine.announce(false);
    expect(machine.manager.phase.admit()).toEqual({ kind: 'admitted' });
  });

  it('sees a cancellation only when the killing is over', async () => {
    const machine = await started(ONE, (each) => {
      each.pods = [pod('a', 0)];
      each.killTakesMs = 8_000;
    });
    await machine.announce(true);
    await machine.announce(false);
    await machine.time.pass(7_000);
    expect(machine.manager.phase.isShuttingDown).toBe(true);
    await machine.time.pass(2_000);
    expect([machine.manager.phase.isShuttingDown, machine.locks]).toEqual([false, 1]);
  });

  it('GE-07 a signal without a boolean', async () => {
    const logged: string[] = [];
    const log = { debug() {}, info() {}, warn: (message: string) => logged.push(message), error() {} };
    let hear: (signal: BusSignal) => void = () => undefined;
    const bus = {
      ended: new AbortController().signal,
      call: async () => [],
      close: () => undefined,
      onSignal: (listener: typeof hear) => {
        hear = listener;
        return () => undefined;
      },
    };
    const watch = shutdownAnnouncements(bus, 'PrepareForShutdown', log, []);
    const next = watch.next();
    for (const body of [[], ['true'], [1], [true]]) {
      const path = '/org/freedesktop/login1';
      hear({ path, interface: 'org.freedesktop.login1.Manager', member: 'PrepareForShutdown', body });
    }
    expect(await next).toEqual({ done: false, value: true });
    expect(logged).toHaveLength(3);
    await watch.return();
  });

  it('GE-09 a watch that cannot be begun anew', async () => {
    const machine = await started(ONE);
    machine.holdFails = true;
    await machine.announce('end');
    await machine.time.pass(3_500);
    expect(machine.logged).toEqual(Array(3).fill('Unable to watch the node for shutdown events: no lock'));
    // The lock of before is kept until there is another.
    expect(machine.locks).toBe(1);
    machine.holdFails = false;
    await machine.time.pass(1_000);
    await machine.announce(true);
    expect([machine.manager.phase.isShuttingDown, machine.locks]).toEqual([true, 0]);
  });

  it('GE-11 nothing at all when it is off', async () => {
    const machine = await started([]);
    await machine.running;
    expect([machine.readings, machine.locks, machine.history]).toEqual([0, 0, []]);
    expect([machine.manager.phase.admit().kind, machine.manager.phase.isShuttingDown]).toEqual(['admitted', false]);
  });

  it('gives up for good, without the lock, when it cannot subscribe at first', async () => {
    const machine = await started(ONE, (each) => {
      each.watchFails = true;
    });
    await machine.running;
    expect(machine.locks).toBe(0);
    expect(machine.logged).toEqual([
      'Failed to start node shutdown manager: failed to monitor shutdown: no subscription',
    ]);
  });

  it('inhibits shutdown again after a cancellation where the lock could not be acquired', async () => {
    const machine = await started(ONE);
    await machine.announce(true);
    machine.holdFails = true;
    await machine.announce(false);
    expect(machine.locks).toBe(0);
    machine.holdFails = false;
    await machine.time.pass(1_000);
    expect(machine.locks).toBe(1);
  });

  it('releases the lock when the agent ends, in the middle of the killing too', async () => {
    const machine = await started(ONE, (each) => {
      each.pods = [pod('a', 0)];
      each.killTakesMs = 9_000;
    });
    await machine.announce(true);
    machine.stop.abort();
    await machine.running;
    expect([machine.locks, machine.seconds()]).toEqual([0, 0]);
  });
});

describe.each(SYSTEMS)('state file and metrics with %s', (_name, system) => {
  const ONE = [bucket(0, 10)];

  it('GF-01 no file', async () => {
    const machine = await startedOn(system, ONE);
    expect([machine.gauges.size, machine.logged]).toEqual([0, []]);
  });

  it('GF-03 the shutdown before', async () => {
    const machine = await startedOn(system, ONE, (each) => {
      each.stateText = '{"startTime":"2024-05-01T10:00:00Z","endTime":"2024-05-01T10:00:25.9Z"}';
    });
    expect([machine.gauges.get(START), machine.gauges.get(END)]).toEqual([1_714_557_600, 1_714_557_625]);
  });

  it('GF-05 the end of a pass', async () => {
    const machine = await startedOn(system, ONE, (each) => {
      each.pods = [pod('a', 0)];
      each.killTakesMs = 2_500;
    });
    await machine.announce(true);
    const startSeconds = NOON_MS / 1_000;
    expect([machine.gauges.get(START), machine.gauges.get(END)]).toEqual([startSeconds, 0]);
    await machine.time.pass(5_000);
    expect([machine.gauges.get(START), machine.gauges.get(END)]).toEqual([startSeconds, startSeconds + 2]);
    expect(machine.stateWrites.map((text) => JSON.parse(text))).toEqual([
      { startTime: '2024-05-01T12:00:00Z', endTime: '0001-01-01T00:00:00Z' },
      { startTime: '2024-05-01T12:00:00Z', endTime: '2024-05-01T12:00:02.5Z' },
    ]);
  });

  it('GF-07 a file that cannot be written', async () => {
    const machine = await startedOn(system, ONE, (each) => {
      each.pods = [pod('a', 0)];
      each.writeFails = true;
    });
    await machine.announce(true);
    await machine.time.pass(1_000);
    expect(machine.gauges.get(START)).toBe(NOON_MS / 1_000);
    expect(machine.lines('kill', 'released')).toEqual(['0 kill a 10', '0 released']);
    expect(machine.logged).toContain('Failed to write the shutdown state file: disk full');
  });

  it('says that the file is none of ours', async () => {
    const machine = await startedOn(system, ONE, (each) => {
      each.stateText = '{"startTime":"yesterday"}';
    });
    expect([machine.gauges.size, machine.logged]).toEqual([0, ['The shutdown state file is malformed']]);
  });
});

describe('the time-out at the start on Windows', () => {
  it.each<[string, number, number[], number, number[]]>([
    ['GI-01 more than enough', 30, [40], 1, []],
    ['GI-05 exactly enough', 5, [5], 1, []],
    ['GI-09 exactly enough for more', 30, [30], 1, []],
    ['GI-11 granted at the next reading', 30, [5, 45], 2, [30_000]],
  ])('%s', async (_name, requested, delays, readings, raised) => {
    const machine = await startedOn(WindowsMachine, [bucket(0, requested)], (each) => {
      each.delaysMs = delays.map((seconds) => seconds * 1_000);
    });
    await machine.time.pass(5_000);
    expect(machine.lines('raise')).toEqual(raised.map((timeoutMs) => `0 raise ${timeoutMs}`));
    // One more for the time that Windows is kept informed.
    expect([machine.readings, machine.time.waits, machine.logged]).toEqual([readings + 1, [], []]);
    expect(machine.service.limitMs).toBe((delays.at(-1) ?? 0) * 1_000);
  });

  it.each([
    ['GI-03 never granted', 30, [5], '30s', '5s'],
    // There is nothing to wait for: Windows has stored another time-out.
    ['GI-07 not granted at the next reading', 90, [30, 30, 90], '1m30s', '30s'],
  ])('%s', async (_name, requested, delays, wanted, current) => {
    const machine = await startedOn(WindowsMachine, [bucket(0, requested)], (each) => {
      each.delaysMs = delays.map((seconds) => seconds * 1_000);
    });
    await machine.running;
    expect([machine.lines('raise'), machine.readings]).toEqual([[`0 raise ${requested * 1_000}`], 2]);
    expect(machine.logged).toEqual([
      `Failed to start node shutdown manager: node shutdown manager was unable to update the preshutdown time-out to ${wanted} (ShutdownGracePeriod), current value is ${current}`,
    ]);
  });
});

describe('the preshutdown of Windows', () => {
  const ONE = [bucket(0, 10)];

  it('GE-01 a shutdown', async () => {
    const machine = await startedOn(WindowsMachine, ONE, (each) => {
      each.pods = [pod('a', 0)];
      each.killTakesMs = 2_000;
    });
    await machine.announce();
    expect(machine.manager.phase.admit()).toMatchObject({ kind: 'refused', reason: 'NodeShutdown' });
    await machine.time.pass(10_000);
    await machine.running;
    expect(machine.history).toEqual([
      '0 Normal NodeShutdown Shutdown manager detected preshutdown event',
      '0 status',
      '0 kill a 10',
      '2 a Failed',
      '2 released',
    ]);
    // There is no cancellation.
    expect(machine.manager.phase.isShuttingDown).toBe(true);
  });

  it('GE-11 nothing at all when it is off', async () => {
    const machine = await startedOn(WindowsMachine, []);
    await machine.running;
    expect([machine.readings, machine.history, machine.service.limitMs]).toEqual([0, [], undefined]);
    expect(machine.manager.phase.admit().kind).toBe('admitted');
  });

  it('does not report the end of the service when only the agent stops', async () => {
    const machine = await startedOn(WindowsMachine, ONE);
    machine.stop.abort();
    await machine.running;
    expect(machine.lines('released')).toEqual([]);
  });

  it('logs one error when the agent is no service', async () => {
    const machine = new Machine(ONE, { shutdownSignal: preshutdownSignal(undefined) });
    await machine.start();
    await machine.running;
    expect(machine.logged).toEqual([
      'Failed to start node shutdown manager: kubelet is NOT running as a Windows service',
    ]);
    expect(machine.manager.phase.admit().kind).toBe('admitted');
  });

  it.each([
    ['preshutdownTimeoutMs', 'query the preshutdown time-out'],
    ['dependencies', 'query the dependencies of the service'],
    ['readOrder', 'read PreshutdownOrder'],
    ['writeOrder', 'write PreshutdownOrder'],
  ] as const)('logs that it could not %s', async (call, what) => {
    const service = new MemoryService();
    service.dependsOn = ['rpc'];
    service[call] = () => {
      throw new Error('access is denied (5)');
    };
    const machine = new Machine(ONE, { shutdownSignal: preshutdownSignal(service) });
    await machine.start();
    await machine.running;
    expect(machine.logged).toEqual([`Failed to start node shutdown manager: Could not ${what}: access is denied (5)`]);
  });
});

describe('order of services on Windows', () => {
  const words = (text: string): string[] => text.split(' ').filter((word) => word !== '');
  const orderAfterStart = async (dependencies: string, existing: string, name = 'kubelet') => {
    const service = new MemoryService(name);
    service.dependsOn = words(dependencies);
    service.order = words(existing);
    await preshutdownSignal(service).hold();
    return service.order.join(' ');
  };

  it.each([
    ['GW-01 no dependencies', '', '', ''],
    ['GW-03 nothing listed', 'a b c', '', 'kubelet a b c'],
    ['GW-05 one dependency missing', 'a b c', 'd b a f', 'd kubelet b a f c'],
    ['GW-07 listed already', 'a b c', 'd f kubelet a b c', 'd f kubelet a b c'],
    ['GW-09 one listed twice', 'a b c', 'd b a f b', 'd kubelet b a f b c'],
  ])('%s', async (_name, dependencies, existing, expected) => {
    expect(await orderAfterStart(dependencies, existing)).toBe(expected);
  });

  it('keeps an order without dependencies, and does not write it', async () => {
    expect(await orderAfterStart('', 'd kubelet e')).toBe('d kubelet e');
  });

  it('compares names in any case, and lists a dependency once', async () => {
    expect(await orderAfterStart('A b B', 'Kubelet x a')).toBe('x kubelet a b');
    expect(await orderAfterStart('a', 'x kubelet a', 'nodekeeper-agent')).toBe('x kubelet nodekeeper-agent a');
  });
});
