import { expect, it } from 'vitest';
import { type WitnessReading, witnessFindings } from './doctor-witness.ts';

const config = { heartbeatEndpoint: 'https://relay', witness: { address: '', port: 7_445 } };
const found = (read: WitnessReading, isRunning: boolean | undefined = true) => {
  const [finding] = witnessFindings(config, read, isRunning);
  return `${finding?.outcome}: ${finding?.message} ${finding?.todo ?? ''}`.trim();
};
const answers = { kind: 'answers' } as const;
const free = { kind: 'free' } as const;

it('has a line only on a machine with a relay', () => {
  expect(witnessFindings({}, undefined, true)).toEqual([]);
  expect(witnessFindings({ heartbeatEndpoint: 'https://relay' }, undefined, true)).toEqual([
    { check: 'witness', outcome: 'ok', message: 'off: the site does not watch this machine' },
  ]);
});

it('finds that the machine answers probes, or can before its agent starts', () => {
  expect(found({ port: answers, relay: 'joined' })).toBe(
    'ok: all addresses, port 7445: the agent answers probes, and the relay watches the site',
  );
  expect(found({ port: free, relay: 'failed' }, false)).toBe('ok: all addresses, port 7445: can be listened on');
});

it('finds what is wrong', () => {
  expect(found({ port: free, relay: 'joined' })).toMatch(/^warning: .*does not answer probes Restart it/);
  expect(found({ port: answers, relay: 'unsupported' })).toMatch(/^warning: the relay does not .* Update the agent/);
  const failedPort = (code: string) => ({ kind: 'failed', code, message: `listen ${code}` }) as const;
  expect(found({ port: failedPort('EADDRINUSE'), relay: 'joined' })).toMatch(/^failed: .*EADDRINUSE .*sport = :7445/);
  expect(found({ port: failedPort('EADDRNOTAVAIL'), relay: 'joined' })).toMatch(/^failed: .*witness\.address/);
});
