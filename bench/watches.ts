/**
 * Many watches of one resource in `nodekeeper serve`: how long after the request of a write its event arrives, what an
 * event costs the server, and what a watch costs at rest. The watches share connections, a hundred streams each, as
 * informers of one client do. Everything runs on this machine, so the clients use a part of its cores.
 */
import { type ClientHttp2Session, connect } from 'node:http2';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type Benchmark,
  percentile,
  type Report,
  readOptions,
  rounded,
  secondsUntil,
  wholeNumber,
} from './benchmark.ts';
import { holdWatch } from './held-watch.ts';
import { processesBelow } from './process-cpu.ts';
import { type ServeHost, startServeHost } from './serve-host.ts';

const STREAMS_PER_CONNECTION = 100;
const ARRIVAL_MS_MAX = 60_000;
const PATH = '/api/v1/namespaces/default/configmaps';

export const watches: Benchmark = {
  name: 'watches',
  about: 'many watches of nodekeeper serve: delay of events, CPU per event, memory and CPU of quiet ones',
  usage: 'watches [--watches 500] [--rate 20] [--seconds 10] [--quiet-seconds 15]',
  smallest: ['--watches', '3', '--rate', '5', '--seconds', '1', '--quiet-seconds', '1'],
  run(report, words) {
    const text = { type: 'string' } as const;
    const values = readOptions(words, { watches: text, rate: text, seconds: text, 'quiet-seconds': text });
    const whole = (name: keyof typeof values, most: number, otherwise: number): number =>
      wholeNumber(name, values[name], { least: 1, most, otherwise });
    return measureWatches(report, {
      watches: whole('watches', 5_000, 500),
      perSecond: whole('rate', 1_000, 20),
      seconds: whole('seconds', 600, 10),
      quietSeconds: whole('quiet-seconds', 600, 15),
    });
  },
};

interface WatchesOptions {
  readonly watches: number;
  readonly perSecond: number;
  readonly seconds: number;
  readonly quietSeconds: number;
}

async function measureWatches(report: Report, options: WatchesOptions): Promise<void> {
  // A user has a quarter of all watches, and this is one user.
  const host = await startServeHost();
  const connections: ClientHttp2Session[] = [];
  try {
    const connection = (): ClientHttp2Session => {
      const made = connect(host.access.url, { ...(host.access.ca !== undefined && { ca: host.access.ca }) });
      connections.push(made);
      return made;
    };
    await measure(report, options, host, connection);
  } finally {
    for (const connection of connections) connection.destroy();
    await host.stop();
  }
}

async function measure(
  report: Report,
  { watches, perSecond, seconds, quietSeconds }: WatchesOptions,
  { pid, access }: ServeHost,
  connection: () => ClientHttp2Session,
): Promise<void> {
  const usage = () => {
    const processes = processesBelow([pid]);
    const sum = (of: (each: (typeof processes)[number]) => number): number =>
      processes.reduce((all, each) => all + of(each), 0);
    return { cpuMs: sum(({ cpuMs }) => cpuMs), megabytes: sum(({ residentBytes }) => residentBytes) / 1_048_576 };
  };
  const authorization = `Bearer ${access.token}`;
  const sentAtMs: number[] = [];
  const delays: number[] = [];
  let begun = 0;
  let refused = 0;
  const before = usage();
  let shared = connection();
  for (let index = 0; index < watches; index += 1) {
    if (index > 0 && index % STREAMS_PER_CONNECTION === 0) shared = connection();
    const { token } = access;
    holdWatch(
      shared,
      { path: PATH, token },
      {
        answered(isAccepted) {
          if (isAccepted) begun += 1;
          else refused += 1;
        },
        received: (number, atMs) => delays.push(atMs - sentAtMs[number]!),
      },
    );
  }
  await secondsUntil(() => begun + refused === watches, ARRIVAL_MS_MAX);
  const rest = usage();
  await pause(quietSeconds * 1_000);
  const quiet = usage();
  report({
    phase: 'quiet',
    watches: begun,
    refused,
    kilobytesPerWatch: rounded(((quiet.megabytes - before.megabytes) * 1_024) / begun),
    cpuMsPerSecond: rounded((quiet.cpuMs - rest.cpuMs) / quietSeconds),
  });

  const writer = connection();
  const startedMs = performance.now();
  for (let number = 0; number < perSecond * seconds; number += 1) {
    await pause(Math.max(0, startedMs + (number * 1_000) / perSecond - performance.now()));
    sentAtMs.push(performance.now());
    const body = { metadata: { name: `bench-${number}` }, data: { number: String(number), text: 'x'.repeat(1_000) } };
    const sent = writer.request({
      ':method': 'POST',
      ':path': PATH,
      'content-type': 'application/json',
      authorization,
    });
    sent.on('error', () => {});
    sent.resume().end(JSON.stringify(body));
  }
  const expected = begun * perSecond * seconds;
  await secondsUntil(() => delays.length >= expected, ARRIVAL_MS_MAX);
  const busy = usage();
  report({
    phase: 'events',
    watches: begun,
    writesPerSecond: perSecond,
    expected,
    received: delays.length,
    p50Ms: rounded(percentile(delays, 0.5)),
    p99Ms: rounded(percentile(delays, 0.99)),
    maxMs: rounded(percentile(delays, 1)),
    cpuMicrosecondsPerEvent: rounded(((busy.cpuMs - quiet.cpuMs) * 1_000) / delays.length),
    megabytes: rounded(busy.megabytes),
  });
}
