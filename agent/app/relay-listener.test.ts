import { afterEach, beforeEach, expect, it } from 'vitest';
import { SteppedTime, settle } from '../../test/support/stepped-time.ts';
import { type OpenRelay, type RelayCertificate, RelayListener } from './relay-listener.ts';

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2026, 0, 1);

let time: SteppedTime;
let stop: AbortController;
let lines: string[];
let gauges: Map<string, number>;
let refused: number;
let certificate: RelayCertificate;
let used: string[];
let isOpen: boolean;
let listener: RelayListener;
let running: Promise<void>;

const certified = (text: string, days: number): RelayCertificate => ({
  certificatePem: text,
  privateKeyPem: text,
  expiresAtMs: START_MS + days * DAY_MS,
});

beforeEach(() => {
  time = new SteppedTime(START_MS);
  stop = new AbortController();
  lines = [];
  gauges = new Map();
  refused = 0;
  certificate = certified('first', 397);
  used = [];
  isOpen = false;
  const server: OpenRelay = {
    useCertificate: ({ certificatePem, privateKeyPem }) => {
      if (certificatePem !== privateKeyPem) throw new Error('key values mismatch');
      used.push(certificatePem);
    },
    close: async () => {
      isOpen = false;
    },
  };
  const line = (level: string) => (message: string, fields?: object) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  listener = new RelayListener({
    address: '10.0.0.7',
    port: 7443,
    readCertificate: () => certificate,
    open: async (given) => {
      refused -= 1;
      if (refused >= 0) throw new Error('listen EADDRINUSE');
      used.push(given.certificatePem);
      isOpen = true;
      return server;
    },
    time,
    log: { debug: () => {}, info: line('info'), warn: line('warn'), error: line('error') },
    meter: { gauge: (name, value) => void gauges.set(name.replace('nodekeeper_agent_relay_', ''), value) },
  });
});
afterEach(async () => {
  stop.abort();
  await running;
  expect(isOpen).toBe(false);
});

async function run(): Promise<void> {
  running = listener.run(stop.signal);
  await settle();
}

it('reports once that its port is in use, and tries again with longer and longer waits', async () => {
  refused = 10;
  await run();
  expect(listener.complaint()).toBe('the relay cannot listen on 10.0.0.7:7443: listen EADDRINUSE');
  expect(gauges.get('listening')).toBe(0);
  for (let minute = 0; minute < 6; minute += 1) await time.pass(60_000);
  expect(time.waits.slice(0, 9)).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60].map((seconds) => seconds * 1_000));
  expect([isOpen, listener.complaint(), gauges.get('listening')]).toEqual([true, undefined, 1]);
  expect(lines).toEqual([
    'error the relay cannot listen; it is tried again ' +
      '{"address":"10.0.0.7","port":7443,"why":"listen EADDRINUSE","waitMs":1000}',
    'info the relay listens {"address":"10.0.0.7","port":7443,"certificateExpiresAt":"2027-02-02T00:00:00.000Z"}',
  ]);
});

it('warns once per day in the last 30 days of its certificate, and fails its check when it has expired', async () => {
  certificate = certified('first', 31);
  await run();
  const hours = async (count: number): Promise<void> => {
    for (let hour = 0; hour < count; hour += 1) await time.pass(3_600_000);
  };
  expect(gauges.get('certificate_expires_time_seconds')).toBe(certificate.expiresAtMs / 1_000);
  await hours(12);
  expect(lines.filter((line) => line.startsWith('warn'))).toEqual([]);
  await hours(30 * 24);
  const warnings = lines.filter((line) => line.startsWith('warn the certificate of the relay expires soon'));
  expect([warnings.length, listener.complaint()]).toEqual([30, undefined]);
  await hours(13);
  expect(listener.complaint()).toBe('the certificate of the relay expired at 2026-02-01T00:00:00.000Z');
  expect(lines.at(-1)).toMatch(/^error the certificate of the relay has expired/);
});

it('uses a renewed certificate within an hour, and keeps the previous one while the new one is incomplete', async () => {
  certificate = certified('first', 2);
  await run();
  certificate = { ...certified('second', 397), privateKeyPem: 'first' };
  await time.pass(3_600_000);
  expect([used, lines.at(-1)]).toEqual([['first'], expect.stringMatching(/^warn .*"why":"key values mismatch"/)]);
  certificate = certified('second', 397);
  await time.pass(3_600_000);
  expect(used).toEqual(['first', 'second']);
  await time.pass(3 * DAY_MS);
  expect(listener.complaint()).toBeUndefined();
  expect(used).toEqual(['first', 'second']);
});
