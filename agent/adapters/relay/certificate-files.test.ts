import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { readRelayCertificate } from './certificate-files.ts';
import { makeRelayCertificate, makeSiteAuthority } from './certificates.ts';

const nowMs = Date.UTC(2026, 10, 20);
const authority = makeSiteAuthority({ commonName: 'site', nowMs, validDays: 30 });
const made = makeRelayCertificate(authority, { names: ['relay.example'], nowMs, validDays: 10 });

it('the certificate of a relay is read with its key and its end', () => {
  const root = folderForTest();
  const [certificateFile, privateKeyFile] = [join(root, 'relay.pem'), join(root, 'relay.key')];
  writeFileSync(certificateFile, made.certificatePem);
  expect(() => readRelayCertificate({ certificateFile, privateKeyFile })).toThrow(/ENOENT.*relay\.key/);
  writeFileSync(privateKeyFile, made.privateKeyPem);
  expect(readRelayCertificate({ certificateFile, privateKeyFile })).toEqual({
    certificatePem: made.certificatePem,
    privateKeyPem: made.privateKeyPem,
    expiresAtMs: nowMs + 10 * 86_400_000,
  });
  writeFileSync(certificateFile, made.privateKeyPem);
  const read = () => readRelayCertificate({ certificateFile, privateKeyFile });
  expect(read).toThrow(`${certificateFile} is no certificate: `);
});
