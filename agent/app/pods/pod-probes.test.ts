import { describe, expect, it } from 'vitest';
import type { Container, KubePod, Probe } from '../../../shared/kinds/types.ts';
import { memoryRuntime } from '../../../test/support/memory-runtime.ts';
import { SteppedTime, settle } from '../../../test/support/stepped-time.ts';
import type { CommandResult, RunningContainer, RunningPod } from '../../ports/pod-runtime.ts';
import type { HttpResult } from '../../ports/probe-client.ts';
import { PodProbes } from './pod-probes.ts';

const START_MS = 1_700_000_000_000;
const UID = 'u1';
const exec: Probe = { exec: { command: ['check', '$(MODE)'] }, periodSeconds: 10 };

function world(
  container: Partial<Container>,
  more: { sidecar?: Container; status?: KubePod['status']; runs?: boolean } = {},
) {
  const time = new SteppedTime(START_MS);
  const answers: { exec: CommandResult | Error; http: HttpResult; tcp: string | undefined } = {
    exec: { kind: 'exited', exitCode: 0, output: '' },
    http: { kind: 'answered', status: 200, body: '' },
    tcp: undefined,
  };
  const asked: string[] = [];
  const restarts: string[] = [];
  const events: string[] = [];
  const results: string[] = [];
  const started: ((uid: string, name: string) => boolean)[] = [];
  const host: { ip?: string } = { ip: '192.0.2.1' };
  const base = memoryRuntime(time);
  const runtime = {
    ...base,
    useStarted: (isStarted: (uid: string, name: string) => boolean) => void started.push(isStarted),
    async restartContainer(uid: string, name: string, graceSeconds: number, message: string) {
      restarts.push(`${uid} ${name} ${graceSeconds} ${message}`);
      throw new Error('it has ended meanwhile');
    },
    ...(more.runs === false
      ? {}
      : {
          async execute(uid: string, name: string, words: readonly string[], limitMs: number) {
            asked.push(`${time.monotonicMs() / 1_000} exec ${uid} ${name} ${words.join(' ')} ${limitMs}`);
            if (answers.exec instanceof Error) throw answers.exec;
            return answers.exec;
          },
        }),
  };
  const probes = new PodProbes({
    runtime,
    probeClient: {
      async httpGet({ scheme, host: to, port, path }, limitMs) {
        asked.push(`${time.monotonicMs() / 1_000} get ${scheme}://${to}:${port}${path} ${limitMs}`);
        return answers.http;
      },
      async tcpConnect(to, port, limitMs) {
        asked.push(`${time.monotonicMs() / 1_000} connect ${to}:${port} ${limitMs}`);
        return answers.tcp;
      },
    },
    time,
    hostIp: () => host.ip,
    recordEvent: (_pod, { type, reason, message }) => events.push(`${type} ${reason}: ${message}`),
  });
  probes.onResult((uid) => results.push(uid));
  const spec: Container = { name: 'main', env: [{ name: 'MODE', value: 'fast' }], ...container };
  const pod: KubePod = {
    metadata: { name: 'p', uid: UID },
    spec: {
      containers: [spec],
      ...(more.sidecar && { initContainers: [more.sidecar] }),
      terminationGracePeriodSeconds: 7,
    },
    ...(more.status && { status: more.status }),
  };
  const containerOf = (name: string, containerId: string, startedAtMs = time.nowMs()): RunningContainer => ({
    name,
    containerId,
    restartCount: 0,
    state: { kind: 'running', startedAtMs },
  });
  const see = (running: Partial<RunningPod> = {}) => {
    const containers = [containerOf('main', 'c1')];
    probes.update(pod, { uid: UID, namespace: 'ns', name: 'p', containers, ...running });
  };
  const readiness = (name = 'main', state: RunningContainer['state'] = { kind: 'running', startedAtMs: 1 }) => {
    const { started: isStarted, ready } = probes.readinessOf(UID, { name, state, restartCount: 0 });
    return `${isStarted} ${ready}`;
  };
  return {
    ...{ time, answers, asked, restarts, events, results, started, host, probes, pod, containerOf, see, readiness },
    end: () => probes.stop(),
  };
}

describe('a probe', () => {
  it('runs each period from the delay after the start of its container on', async () => {
    const { time, see, asked, end } = world({ livenessProbe: { ...exec, initialDelaySeconds: 5, timeoutSeconds: 3 } });
    see();
    await time.pass(4_999);
    expect(asked).toEqual([]);
    await time.pass(20_001);
    expect(asked).toEqual([
      '5 exec u1 main check fast 3000',
      '15 exec u1 main check fast 3000',
      '25 exec u1 main check fast 3000',
    ]);
    end();
    await time.pass(60_000);
    expect(asked).toHaveLength(3);
  });

  it('does not wait longer than its delay when the clock was set back', async () => {
    const { time, see, asked, containerOf, end } = world({ livenessProbe: { ...exec, initialDelaySeconds: 5 } });
    see({ containers: [containerOf('main', 'c1', START_MS + 3_600_000)] });
    await time.pass(4_999);
    expect(asked).toHaveLength(0);
    await time.pass(1);
    expect(asked).toHaveLength(1);
    end();
  });

  it('runs on when the clock is set back', async () => {
    const { time, see, asked, end } = world({ livenessProbe: { ...exec, initialDelaySeconds: 5 } });
    see();
    await time.pass(15_000);
    expect(asked).toHaveLength(2);
    time.setClock(-365 * 86_400_000);
    await time.pass(20_000);
    expect(asked).toHaveLength(4);
    end();
  });

  it('does not run while its container does not', async () => {
    const { time, see, asked, containerOf, end } = world({ livenessProbe: exec });
    see({ containers: [] });
    see({ containers: [{ ...containerOf('main', 'c1'), state: { kind: 'waiting', reason: 'x' } }] });
    await time.pass(30_000);
    expect(asked).toEqual([]);
    see({ containers: [containerOf('main', 'c1')] });
    await time.pass(10_000);
    expect(asked).toHaveLength(1);
    end();
  });

  it('is none where the runtime makes the probes', async () => {
    const { time, see, asked, readiness } = world({ readinessProbe: exec }, { runs: false });
    see();
    await time.pass(30_000);
    expect([asked, readiness()]).toEqual([[], 'true true']);
  });

  it('of a pod that no longer runs has nothing to probe', async () => {
    const { time, probes, pod, asked, see, end } = world({ livenessProbe: exec });
    see();
    await time.pass(0);
    probes.update(pod, undefined);
    await time.pass(30_000);
    expect(asked).toHaveLength(1);
    end();
  });
});

describe('the outcome of a probe', () => {
  const http: Probe = { httpGet: { port: 80, path: '/ready' } };
  const tcp: Probe = { tcpSocket: { port: 81 } };
  const answered = (status: number): HttpResult => ({ kind: 'answered', status, body: 'b' });

  it.each([
    [exec, { exec: { kind: 'exited' as const, exitCode: 0, output: 'x' } }, undefined],
    [
      exec,
      { exec: { kind: 'exited' as const, exitCode: 1, output: 'why' } },
      'Warning Unhealthy: Readiness probe failed: why',
    ],
    [
      exec,
      { exec: { kind: 'timedOut' as const } },
      'Warning Unhealthy: Readiness probe failed: command "check fast" timed out',
    ],
    [http, { http: answered(200) }, undefined],
    [http, { http: answered(399) }, undefined],
    [
      http,
      { http: answered(199) },
      'Warning Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 199',
    ],
    [
      http,
      { http: answered(400) },
      'Warning Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 400',
    ],
    [
      http,
      { http: { kind: 'failed' as const, message: 'no route' } },
      'Warning Unhealthy: Readiness probe failed: no route',
    ],
    [
      http,
      { http: { kind: 'redirected' as const, body: 'b' } },
      'Warning ProbeWarning: Readiness probe warning: Probe terminated redirects, Response body: b',
    ],
    [tcp, { tcp: undefined }, undefined],
    [tcp, { tcp: 'refused' }, 'Warning Unhealthy: Readiness probe failed: refused'],
  ])('of %j that answers %j has the event %s', async (probe, answer, event) => {
    const { time, see, answers, events, asked, end } = world({ readinessProbe: probe });
    Object.assign(answers, answer);
    see();
    await time.pass(0);
    expect(events).toEqual(event === undefined ? [] : [event]);
    expect(asked).toHaveLength(1);
    end();
  });

  it.each([
    [exec, { exec: { kind: 'failed' as const, message: 'no shell' } }, 'no shell', 3],
    [exec, { exec: new Error('broken') }, 'broken', 3],
    [{ httpGet: { port: 'none' } }, {}, undefined, 0],
    [{ tcpSocket: { port: 'none' } }, {}, undefined, 0],
  ])(
    'of %j with %j is no answer: it counts as nothing after three attempts',
    async (probe: Probe, answer, why, count) => {
      const { time, see, answers, events, asked, results, readiness, end } = world({ readinessProbe: probe });
      Object.assign(answers, answer);
      see();
      await time.pass(0);
      expect(asked).toHaveLength(count);
      expect(events).toHaveLength(1);
      expect(events[0]).toContain('Warning Unhealthy: Readiness probe errored and resulted in unknown state: ');
      if (why !== undefined) expect(events[0]).toMatch(new RegExp(`: ${why}$`));
      expect([results, readiness()]).toEqual([[], 'true false']);
      end();
    },
  );

  it('is from the address of the pod, or else of the machine', async () => {
    const { time, see, asked, host, end } = world({ readinessProbe: http, livenessProbe: tcp });
    see({ ip: '10.0.0.7' });
    await time.pass(0);
    see({ ip: '' });
    await time.pass(10_000);
    delete host.ip;
    await time.pass(10_000);
    expect(asked.map((each) => each.split(' ').slice(1, 3).join(' '))).toEqual([
      'get http://10.0.0.7:80/ready',
      'connect 10.0.0.7:81',
      'get http://192.0.2.1:80/ready',
      'connect 192.0.2.1:81',
      'get http://127.0.0.1:80/ready',
      'connect 127.0.0.1:81',
    ]);
    end();
    const named = world({ readinessProbe: { tcpSocket: { port: 81, host: 'db' } } });
    named.see();
    await named.time.pass(0);
    expect(named.asked).toEqual(['0 connect db:81 1000']);
    named.end();
  });
});

describe('the readiness of a container', () => {
  it('follows its probe, and each change is reported', async () => {
    const { time, see, readiness, results, answers, end } = world({ readinessProbe: exec });
    expect(readiness()).toBe('true true');
    see();
    expect(readiness()).toBe('true false');
    await time.pass(0);
    expect([readiness(), results]).toEqual(['true true', [UID]]);
    expect(readiness('main', { kind: 'waiting', reason: 'x' })).toBe('false false');
    answers.exec = { kind: 'exited', exitCode: 1, output: '' };
    await time.pass(20_000);
    expect([readiness(), results]).toEqual(['true true', [UID]]);
    await time.pass(10_000);
    expect([readiness(), results]).toEqual(['true false', [UID, UID]]);
    end();
  });

  it('begins as the API last knew it, for the run that was ready', async () => {
    const status = (containerID: string, ready: boolean): KubePod['status'] => ({
      containerStatuses: [{ name: 'main', containerID, ready, restartCount: 0, image: '', imageID: '' }],
    });
    for (const [known, ready, expected] of [
      ['c1', true, 'true true'],
      ['c0', true, 'true false'],
      ['c1', false, 'true false'],
    ] as const) {
      const given = world({ readinessProbe: { ...exec, initialDelaySeconds: 60 } }, { status: status(known, ready) });
      given.see();
      expect(given.readiness()).toBe(expected);
      // A later run starts anew.
      given.see({ containers: [given.containerOf('main', known === 'c0' ? 'c0' : 'c2')] });
      expect(given.readiness()).toBe('true false');
      given.end();
    }
  });

  it('waits for the startup probe, which ends with its success', async () => {
    const { time, see, readiness, answers, asked, results, started, end } = world({
      startupProbe: { tcpSocket: { port: 81 } },
      readinessProbe: exec,
    });
    answers.tcp = 'refused';
    see();
    await time.pass(10_000);
    expect([readiness(), started[0]?.(UID, 'main'), started[0]?.('other', 'main')]).toEqual([
      'false false',
      false,
      false,
    ]);
    expect(asked.map((each) => each.split(' ')[1])).toEqual(['connect', 'connect']);
    answers.tcp = undefined;
    await time.pass(10_000);
    // The others are woken at once.
    expect([readiness(), started[0]?.(UID, 'main')]).toEqual(['true true', true]);
    expect(asked.at(-1)).toBe('20 exec u1 main check fast 1000');
    expect(results).toEqual([UID, UID]);
    await time.pass(50_000);
    expect(asked.filter((each) => each.includes('connect'))).toHaveLength(3);
    end();
  });

  it('of a sidecar has its own probes, and an init container none', async () => {
    const sidecar: Container = { name: 'side', restartPolicy: 'Always', readinessProbe: { tcpSocket: { port: 1 } } };
    const given = world({}, { sidecar });
    given.see({ initContainers: [given.containerOf('side', 's1')] });
    await given.time.pass(0);
    expect([given.asked, given.readiness('side')]).toEqual([['0 connect 192.0.2.1:1 1000'], 'true true']);
    given.end();
    const init = world({}, { sidecar: { name: 'side', readinessProbe: { tcpSocket: { port: 1 } } } });
    init.see({ initContainers: [init.containerOf('side', 's1')] });
    await init.time.pass(30_000);
    expect(init.asked).toEqual([]);
  });
});

describe('a container that is not alive', () => {
  it('is restarted once, and probed again in its next run', async () => {
    const { time, see, answers, asked, restarts, containerOf, end } = world({ livenessProbe: exec });
    answers.exec = { kind: 'exited', exitCode: 1, output: 'dead' };
    see();
    await time.pass(19_999);
    expect(restarts).toEqual([]);
    await time.pass(60_001);
    expect(restarts).toEqual(['u1 main 7 Container main failed liveness probe, will be restarted']);
    expect(asked).toHaveLength(3);
    see({ containers: [containerOf('main', 'c2')] });
    await time.pass(0);
    expect(asked).toHaveLength(4);
    end();
  });

  it('is not restarted by a probe that ends after it did', async () => {
    for (const change of ['newRun', 'ended', 'removed'] as const) {
      const given = world({ livenessProbe: { ...exec, failureThreshold: 1 } });
      const block = Promise.withResolvers<CommandResult>();
      Object.assign(given.answers, { exec: block.promise });
      given.see();
      await settle();
      if (change === 'newRun') given.see({ containers: [given.containerOf('main', 'c2')] });
      if (change === 'ended')
        given.see({ containers: [{ ...given.containerOf('main', 'c1'), state: { kind: 'waiting', reason: 'x' } }] });
      if (change === 'removed') given.probes.remove(UID);
      block.resolve({ kind: 'exited', exitCode: 1, output: '' });
      await settle();
      await settle();
      expect([given.restarts, given.events]).toEqual([[], []]);
      given.end();
    }
  });
});
