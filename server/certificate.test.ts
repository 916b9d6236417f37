import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { type CertifiedKey, makeAuthority, makeServerCertificate } from '../shared/host/certificate.ts';
import { followFiles, readAuthorities, renewMonthly } from './certificate.ts';

const NOW_MS = Date.now();
const DAY_MS = 86_400_000;
const made = async (): Promise<CertifiedKey> => {
  const authority = await makeAuthority({ commonName: 'test', nowMs: NOW_MS, validDays: 1 });
  return makeServerCertificate(authority, { names: ['edge'], nowMs: NOW_MS, validDays: 1 });
};

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** What was used, and what was logged as an error. */
function following() {
  const used: CertifiedKey[] = [];
  const errors: string[] = [];
  const log = { debug() {}, info() {}, warn() {}, error: (message: string) => void errors.push(message) };
  return { used, errors, options: { use: (certificate: CertifiedKey) => void used.push(certificate), log } };
}

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'nodekeeper-certificate-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

it('uses files that change, and stays with the certificate before while they cannot be used', async () => {
  const folder = directory();
  const files = { certificateFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') };
  const write = ({ certificatePem, privateKeyPem }: CertifiedKey): void => {
    writeFileSync(files.certificateFile, certificatePem);
    writeFileSync(files.keyFile, privateKeyPem);
  };
  write(await made());
  const { used, errors, options } = following();
  onTestFinished(followFiles(files, options));
  vi.advanceTimersByTime(30_000);
  expect(used).toEqual([]);
  const next = await made();
  write(next);
  vi.advanceTimersByTime(10_000);
  expect(used).toEqual([next]);
  rmSync(files.keyFile);
  vi.advanceTimersByTime(10_000);
  // A loop of links stands for every fault that is not a missing file.
  symlinkSync(files.keyFile, files.keyFile);
  vi.advanceTimersByTime(20_000);
  expect(errors).toHaveLength(2);
  expect(used).toHaveLength(1);
});

it('signs another certificate each month, and tries again a day after a fault', async () => {
  const { used, errors, options } = following();
  const certificate = await made();
  let faults = 1;
  const sign = async () => {
    if (faults-- > 0) throw new Error('no entropy');
    return certificate;
  };
  onTestFinished(renewMonthly(sign, options));
  await vi.advanceTimersByTimeAsync(29 * DAY_MS);
  expect([used, errors]).toEqual([[], []]);
  await vi.advanceTimersByTimeAsync(2 * DAY_MS);
  expect([used.length, errors.length]).toEqual([1, 1]);
  await vi.advanceTimersByTimeAsync(30 * DAY_MS);
  expect(used).toHaveLength(2);
});

it('authorities of clients are certificates of authorities, and nothing else', async () => {
  const folder = directory();
  const file = join(folder, 'ca.pem');
  const authority = await makeAuthority({ commonName: 'people', nowMs: NOW_MS, validDays: 1 });
  writeFileSync(file, `a comment\n${authority.certificatePem}${authority.certificatePem}`);
  expect(readAuthorities(file)).toHaveLength(2);
  writeFileSync(file, (await made()).certificatePem);
  expect(() => readAuthorities(file)).toThrow('ca.pem must have certificates of authorities in PEM');
  writeFileSync(file, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
  expect(() => readAuthorities(file)).toThrow('ca.pem has a certificate that cannot be read');
});
