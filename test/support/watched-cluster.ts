/**
 * A cluster on virtual time with its alarms. The controllers are called like by their functions. Their metrics are the
 * log lines of the functions' own meter. The test supplies the metrics of AWS (calls, errors, depths, ages).
 */
import { Metrics } from '@aws-lambda-powertools/metrics';
import type { Template } from 'aws-cdk-lib/assertions';
import type { SQSEvent } from 'aws-lambda';
import type { FunctionName } from '../../functions/function-list.ts';
import { handleTickMessages } from '../../functions/node-monitor/tick-message.ts';
import { handleWakeUp, wakeUpEvent } from '../../shared/aws/wake-up.ts';
import { type EmbeddedMeter, embeddedMeter } from '../../shared/observability/meter.ts';
import { functionIds } from '../cdk/synthesised.ts';
import { EvaluatedAlarms, MetricFigures } from './alarm-evaluator.ts';
import { type FleetOptions, START_MS, settledFleet } from './controlled-fleet.ts';

export const NAMESPACE = 'Nodekeeper/nodekeeper';
const MINUTE_SECONDS = 60;
const BEAT_SECONDS = 10;

type Woken = 'evictor' | 'cloud-node' | 'scheduler' | 'workloads';
type Ticking = 'node-monitor' | Woken;
type Service = Ticking | 'node-marker' | 'object-stream';

/** Lines written to standard output while `run` runs. */
export async function printed(run: () => unknown): Promise<string[]> {
  const { write } = process.stdout;
  let text = '';
  process.stdout.write = ((chunk: string | Uint8Array) => {
    text += String(chunk);
    return true;
  }) as typeof write;
  try {
    await run();
  } finally {
    process.stdout.write = write;
  }
  return text.split('\n').filter((line) => line !== '');
}

export interface Minute {
  /** Nodes that beat. @default all */
  readonly beating?: (name: string) => boolean;
  /** Heartbeats one by one, at a different second for each node. @default all nodes at once, every 10 s */
  readonly beats?: Beats;
  /** Controllers that run. @default all but scheduler and workloads */
  readonly ticking?: readonly Ticking[];
  /** What AWS measures in this minute, in place of that of a quiet one. */
  readonly platform?: Partial<Platform>;
}

export interface Beats {
  intervalSeconds(name: string): number;
  /** Whether the `beat`th heartbeat of the node arrives. `index`: of the node. */
  arrives(index: number, beat: number): boolean;
}

/** Sums of a minute, by function where there are several. */
interface Platform {
  readonly beats: number;
  readonly cloudNodeCalls: number;
  readonly podGcCalls: number;
  readonly schedulerCalls: number;
  readonly workloadsCalls: number;
  readonly requests: number;
}

/** Probes of node-monitor in a minute: one per tick. */
const PROBES = 12;
const QUIET: Platform = {
  beats: 60,
  cloudNodeCalls: 12,
  podGcCalls: 3,
  schedulerCalls: 1,
  workloadsCalls: 1,
  requests: 60,
};

export async function watchedCluster(
  template: Template,
  zones: Readonly<Record<string, number>>,
  options: Omit<FleetOptions, 'meter'> = {},
) {
  const alarms = new EvaluatedAlarms(template);
  const figures = new MetricFigures();
  const ids = functionIds(template);
  const meters = new Map<Service, EmbeddedMeter>(
    (['node-monitor', 'node-marker', 'evictor', 'cloud-node', 'object-stream', 'scheduler', 'workloads'] as const).map(
      (serviceName) => [
        serviceName,
        embeddedMeter((service = serviceName) => new Metrics({ namespace: NAMESPACE, serviceName: service })),
      ],
    ),
  );
  let service: Service = 'object-stream';
  const meter = () => meters.get(service)!;
  const parts: string[] = [];
  const partQueue = {
    async send(bodies: readonly string[]) {
      parts.push(...bodies);
      return [];
    },
    async postpone() {},
  };
  const { fleet, names } = await settledFleet(zones, {
    partQueue,
    ...options,
    meter: { add: (...of) => meter().add(...of) },
  });
  let seconds = 0;
  let linesOfMinute: string[] = [];

  /** Runs it as an invocation of that function: its meter, and its lines when it ends. */
  async function invoke(name: Service, run: () => Promise<unknown>): Promise<void> {
    service = name;
    const lines = await printed(async () => {
      await run();
      meter().publish();
    });
    for (const line of lines) figures.addLine(line, fleet.nowMs());
    linesOfMinute.push(...lines);
    service = 'object-stream';
  }

  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

  const tickNodeMonitor = (): Promise<void> =>
    invoke('node-monitor', () =>
      handleTickMessages({ Records: [{ messageId: '1', receiptHandle: '1', body: '{"slot":0}' }] } as SQSEvent, {
        log,
        meter: meter(),
        clock: { nowMs: fleet.nowMs },
        queue: { postpone: () => Promise.resolve() },
        onMessage: (kind) => fleet.controllers.onTickMessage(kind),
      }),
    );

  /** A sweep at the beginning of each minute, wake-ups at the other ticks. */
  const wake = (name: Woken): Promise<void> =>
    invoke(name, () =>
      handleWakeUp(seconds % MINUTE_SECONDS === 0 ? {} : wakeUpEvent(fleet.nowMs()), {
        periodSeconds: fleet.policy.nodeMonitorPeriodSeconds,
        log,
        meter: meter(),
        clock: { nowMs: fleet.nowMs },
        reportsSweeps: name === 'evictor',
        runTick: (slot): Promise<unknown> => {
          if (name === 'scheduler') return fleet.controllers.tickScheduler(slot);
          if (name === 'workloads') return fleet.controllers.tickWorkloads(slot);
          return name === 'evictor' ? fleet.controllers.tickEvictor(slot) : fleet.controllers.tickCloudNode(slot);
        },
      }),
    );
  const tick = (name: Ticking): Promise<void> => (name === 'node-monitor' ? tickNodeMonitor() : wake(name));

  /** The heartbeats since the last tick. */
  async function sendSpread({ intervalSeconds, arrives }: Beats): Promise<void> {
    for (let at = seconds - fleet.policy.nodeMonitorPeriodSeconds + 1; at <= seconds; at += 1) {
      fleet.at(at);
      for (const [index, name] of names.entries()) {
        const beat = (at - index) / intervalSeconds(name);
        if (Number.isInteger(beat) && arrives(index, beat)) await fleet.beat(name);
      }
    }
  }

  const cluster = {
    fleet,
    names,
    alarms,
    figures,
    /** Log lines of metrics in the last minute. */
    lines: (): readonly string[] => linesOfMinute,
    nowMs: (): number => START_MS + seconds * 1_000,
    /** A figure of AWS's own, of a function. */
    setMetric(functionName: FunctionName, name: string, value: number): void {
      const dimensions = { FunctionName: `<${ids.get(functionName)}>` };
      figures.add({ namespace: 'AWS/Lambda', name, dimensions }, cluster.nowMs(), value);
    },
    /** A figure of AWS's own, under the dimensions that the alarm asks for. */
    tellAs(alarm: string, metric: string, value: number, index = 0): void {
      const id = alarms.alarm(`nodekeeper-${alarm}`).metrics.filter(({ name }) => name === metric)[index];
      if (id === undefined) throw new Error(`${alarm} asks for no ${metric}`);
      figures.add(id, cluster.nowMs(), value);
    },
    async minute(of: Minute = {}): Promise<void> {
      const { beating = () => true, ticking = ['node-monitor', 'evictor', 'cloud-node'] } = of;
      const sent = PROBES + (names.filter(beating).length * MINUTE_SECONDS) / BEAT_SECONDS;
      const platform = { ...QUIET, beats: Math.max(QUIET.beats, sent), ...of.platform };
      linesOfMinute = [];
      if (platform.beats > 0) cluster.setMetric('heartbeat', 'Invocations', platform.beats);
      if (platform.cloudNodeCalls > 0) cluster.setMetric('cloud-node', 'Invocations', platform.cloudNodeCalls);
      if (platform.podGcCalls > 0) cluster.setMetric('pod-gc', 'Invocations', platform.podGcCalls);
      if (platform.schedulerCalls > 0) cluster.setMetric('scheduler', 'Invocations', platform.schedulerCalls);
      if (platform.workloadsCalls > 0) cluster.setMetric('workloads', 'Invocations', platform.workloadsCalls);
      if (platform.requests > 0) cluster.tellAs('api-errors', 'Count', platform.requests);
      const end = seconds + MINUTE_SECONDS;
      for (; seconds < end; seconds += fleet.policy.nodeMonitorPeriodSeconds) {
        fleet.at(seconds);
        if (of.beats !== undefined) await sendSpread(of.beats);
        else if (seconds % BEAT_SECONDS === 0) await fleet.beat(...names.filter(beating));
        for (const name of ticking) await tick(name);
        for (const body of parts.splice(0)) {
          await invoke('node-marker', () => fleet.controllers.onMarkPart({ body, receives: 1 }));
        }
        await invoke('object-stream', () => fleet.streams());
      }
      alarms.evaluate(figures, cluster.nowMs());
    },
    async minutes(count: number, of: Minute = {}, before?: () => unknown): Promise<void> {
      for (let minute = 0; minute < count; minute += 1) {
        before?.();
        await cluster.minute(of);
      }
    },
    state: (name: string) => alarms.alarm(`nodekeeper-${name}`).state,
    alarming: () => alarms.alarming().map((name) => name.replace(/^nodekeeper-/, '')),
    pages: () => alarms.compositeState('nodekeeper-page') === 'ALARM',
  };
  return cluster;
}
