import { describe, expect, it } from 'vitest';
import { type RelayFilesReading, type RelayPortReading, type RelayReading, relayFindings } from './doctor-relay.ts';

const DAY_MS = 86_400_000;
const URL = 'https://relay.site.example:7443';
const relay = { address: '', port: 7_443, certificateFile: '/r/relay.pem', privateKeyFile: '/r/relay.key' };
const answered = {
  kind: 'answered',
  tookMs: 4.4,
  isRelay: true,
  status: 405,
  certificateEndsMs: 200.5 * DAY_MS,
} as const;
const files = {
  kind: 'read',
  names: ['relay.site.example', '10.0.0.7'],
  ownNames: ['10.0.0.7'],
  addresses: ['10.0.0.7', 'fd00::7'],
  expiresAtMs: 200.5 * DAY_MS,
} as const;

const using = (usedRelay: RelayReading) =>
  relayFindings({ heartbeatEndpoint: URL }, { usedRelay, ownRelay: undefined }, { isRunning: true, nowMs: 0 });
const relaying = (
  port: RelayPortReading,
  read: RelayFilesReading = files,
  { isRunning, address = '' }: { isRunning?: boolean | undefined; address?: string } = {},
) =>
  relayFindings(
    { relay: { ...relay, address } },
    { usedRelay: undefined, ownRelay: { port, files: read } },
    { isRunning, nowMs: 0 },
  );
const portFinding = (...args: Parameters<typeof relaying>) => relaying(...args)[0];
const fileFindings = (read: Partial<Extract<RelayFilesReading, { kind: 'read' }>>) =>
  relaying({ kind: 'free' }, { ...files, ...read }).slice(1);

it('the doctor has no line about relays on a machine without one', () => {
  const none = { usedRelay: undefined, ownRelay: undefined };
  expect(relayFindings({}, none, { isRunning: true, nowMs: 0 })).toEqual([]);
});

describe('the doctor of a machine that uses a relay', () => {
  it('finds nothing if the relay answers with a trusted certificate', () => {
    const message = `${URL} answered in 4 ms, its certificate is trusted and ends in 200 days`;
    expect(using(answered)).toEqual([{ check: 'relay', outcome: 'ok', message }]);
    expect(using({ ...answered, certificateEndsMs: undefined })).toEqual([
      { check: 'relay', outcome: 'ok', message: `${URL} answered in 4 ms, its certificate is trusted` },
    ]);
  });

  it.each<[string, RelayReading, string, RegExp, RegExp]>([
    ['near end', { ...answered, certificateEndsMs: 30 * DAY_MS }, 'warning', /in 30 days/, /Renew it on the relay/],
    ['authority', failure('SELF_SIGNED_CERT_IN_CHAIN'), 'failed', /SELF/, /site-ca\.pem/],
    ['issuer', failure('UNABLE_TO_GET_ISSUER_CERT_LOCALLY'), 'failed', /LOCALLY/, /site-ca\.pem/],
    ['name', failure('ERR_TLS_CERT_ALTNAME_INVALID'), 'failed', /ALTNAME/, /name of the certificate/],
    ['end', failure('CERT_HAS_EXPIRED'), 'failed', /EXPIRED/, /Renew the certificate on the relay/],
    ['stopped relay', failure('ECONNREFUSED'), 'warning', /sent directly/, /doctor on the relay/],
    ['DNS', failure('ENOTFOUND'), 'warning', /sent directly/, /DNS/],
    ['cut', failure('ETIMEDOUT'), 'warning', /sent directly/, /firewalls/],
    ['load', { ...answered, isRelay: false, status: 503 }, 'warning', /overloaded/, /second relay/],
    ['another server', { ...answered, isRelay: false, status: 401 }, 'failed', /no relay: it answered 401/, /port/],
  ])('finds a fault of: %s', (_what, read, outcome, message, todo) => {
    const [finding, ...others] = using(read);
    expect(others).toEqual([]);
    expect(finding).toMatchObject({ check: 'relay', outcome, message: expect.stringMatching(message) });
    expect(finding?.todo).toMatch(todo);
  });
});

describe('the doctor of a relay', () => {
  it('finds nothing if the agent relays with a certificate for this machine', () => {
    expect(relaying({ kind: 'served', isThisCertificate: true }, files, { isRunning: true })).toEqual([
      { check: 'relay-port', outcome: 'ok', message: 'all addresses, port 7443: the agent relays' },
      {
        check: 'relay-cert',
        outcome: 'ok',
        message: 'fits its key, is for relay.site.example, 10.0.0.7, ends in 200 days',
      },
    ]);
  });

  it('finds nothing if the port is free before the agent is started', () => {
    for (const isRunning of [false, undefined]) {
      expect(portFinding({ kind: 'free' }, files, { isRunning, address: '10.0.0.7' })).toEqual({
        check: 'relay-port',
        outcome: 'ok',
        message: '10.0.0.7, port 7443: can be listened on',
      });
    }
  });

  it.each<[string, RelayPortReading, boolean | undefined, string, RegExp, RegExp]>([
    ['agent that does not listen', { kind: 'free' }, true, 'failed', /does not listen/, /restart/],
    ['older certificate', { kind: 'served', isThisCertificate: false }, true, 'warning', /another cert/, /hour/],
    ['stray relay', { kind: 'served', isThisCertificate: true }, false, 'failed', /another process/, /ss -ltnp/],
    ['port in use', failure('EADDRINUSE'), true, 'failed', /EADDRINUSE/, /ss -ltnp 'sport = :7443'/],
    ['address', failure('EADDRNOTAVAIL'), undefined, 'failed', /EADDRNOTAVAIL/, /relay\.address/],
    ['rights', failure('EACCES'), undefined, 'failed', /EACCES/, /root/],
  ])('finds a fault of: %s', (_what, read, isRunning, outcome, message, todo) => {
    const finding = portFinding(read, files, { isRunning });
    expect(finding).toMatchObject({ check: 'relay-port', outcome, message: expect.stringMatching(message) });
    expect(finding?.todo).toMatch(todo);
  });

  it('warns in the last 30 days of the certificate, as the agent does, and fails at its end', () => {
    const outcomes = [30 * DAY_MS + 1, 30 * DAY_MS, 1, 0].map(
      (expiresAtMs) => fileFindings({ expiresAtMs })[0]?.outcome,
    );
    expect(outcomes).toEqual(['ok', 'warning', 'warning', 'failed']);
    expect(fileFindings({ expiresAtMs: 1 })[0]?.todo).toMatch(/relay init/);
  });

  it('warns of a certificate for other machines, also if it ends soon', () => {
    const findings = fileFindings({ ownNames: [], expiresAtMs: 5 * DAY_MS });
    expect(findings.map(({ outcome, message }) => `${outcome} ${message}`)).toEqual([
      'warning the certificate is for relay.site.example, 10.0.0.7: none is an address of this machine (10.0.0.7, fd00::7)',
      'warning the certificate ends in 5 days',
    ]);
    expect(findings[0]?.todo).toMatch(/--name/);
    expect(fileFindings({ ownNames: [] })).toHaveLength(1);
    expect(fileFindings({ ownNames: undefined })).toMatchObject([{ outcome: 'ok' }]);
  });

  it('names five names of a certificate, and counts the others', () => {
    const names = Array.from({ length: 8 }, (_, index) => `r${index}.example`);
    expect(fileFindings({ names })[0]?.message).toBe(
      'fits its key, is for r0.example, r1.example, r2.example, r3.example, r4.example and 3 more, ends in 200 days',
    );
  });

  it('fails for a certificate without names, and for files that are unusable', () => {
    expect(fileFindings({ names: [] })).toMatchObject([
      { outcome: 'failed', message: expect.stringMatching(/no DNS/) },
    ]);
    const unusable = relaying({ kind: 'free' }, { kind: 'unusable', message: 'ENOENT /r/relay.pem' });
    expect(unusable[1]).toMatchObject({ check: 'relay-cert', outcome: 'failed', message: 'ENOENT /r/relay.pem' });
    expect(unusable[1]?.todo).toMatch(/relay init/);
  });
});

function failure(code: string) {
  return { kind: 'failed', code, message: code } as const;
}
