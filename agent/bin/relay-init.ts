/**
 * nodekeeper-agent relay init --directory DIR --name NAME[,NAME…]
 *
 * Makes the certificate authority of a site, and the certificate of a relay. With an authority in the directory it only
 * makes a new certificate: to renew one, or for another relay.
 */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { makeDirectory } from '../../shared/host/directory.ts';
import { PRIVATE_DIRECTORY } from '../../shared/host/write-file.ts';
import { subdomainErrors } from '../../shared/kubernetes/validate-metadata.ts';
import { makeRelayCertificate, makeSiteAuthority } from '../adapters/relay/certificates.ts';

export const RELAY_USAGE = `Usage: nodekeeper-agent relay init --directory DIR --name NAME[,NAME…] [--port PORT]

  --directory DIR   for site-ca.pem, site-ca.key, relay.pem and relay.key
  --name NAMES      DNS names and addresses of the relay, as machines of the site use them
  --port PORT       for the printed configuration (7443)
`;

const AUTHORITY_DAYS = 3_650;
const CERTIFICATE_DAYS = 397;
const DEFAULT_PORT = '7443';
const OWNER_ONLY = 0o600;
const PUBLIC = 0o644;

export interface RelayInitOutput {
  readonly exitCode: 0 | 1 | 2;
  readonly text: string;
}

/** @param args the command line behind `relay` */
export function relayInit(args: readonly string[], nowMs: number): RelayInitOutput {
  const options = optionsOf(args);
  if (options === undefined) return { exitCode: 2, text: RELAY_USAGE };
  const wrong = options.names.find((name) => isIP(name) === 0 && subdomainErrors(name).length > 0);
  if (wrong !== undefined) {
    return { exitCode: 2, text: `--name ${JSON.stringify(wrong)}: expected a DNS name or an address\n` };
  }
  try {
    return { exitCode: 0, text: makeFiles(options, nowMs) };
  } catch (cause) {
    return { exitCode: 1, text: `nodekeeper-agent: ${(cause as Error).message}\n` };
  }
}

interface InitOptions {
  readonly directory: string;
  readonly names: readonly string[];
  readonly port: string;
}

function optionsOf([command, ...args]: readonly string[]): InitOptions | undefined {
  const text = { type: 'string' } as const;
  try {
    const { values } = parseArgs({ args, options: { directory: text, name: text, port: text } });
    const names = (values.name ?? '').split(',').filter((name) => name !== '');
    if (command !== 'init' || values.directory === undefined || names.length === 0) return undefined;
    return { directory: resolve(values.directory), names, port: values.port ?? DEFAULT_PORT };
  } catch {
    return undefined;
  }
}

/** A new file: a key must not get the mode of the file that it replaces, and a crash must not leave half of it. */
function replaceFile(path: string, text: string, mode: number): void {
  const temporary = `${path}.new`;
  rmSync(temporary, { force: true });
  writeFileSync(temporary, text, { mode, flag: 'wx', flush: true });
  renameSync(temporary, path);
}

function makeFiles({ directory, names, port }: InitOptions, nowMs: number): string {
  makeDirectory(directory, PRIVATE_DIRECTORY);
  const path = (name: string): string => join(directory, name);
  const [authorityFile, authorityKeyFile] = [path('site-ca.pem'), path('site-ca.key')];
  const isNew = !existsSync(authorityFile) && !existsSync(authorityKeyFile);
  if (isNew) {
    const made = makeSiteAuthority({ commonName: 'nodekeeper site', nowMs, validDays: AUTHORITY_DAYS });
    writeFileSync(authorityKeyFile, made.privateKeyPem, { mode: OWNER_ONLY, flag: 'wx' });
    writeFileSync(authorityFile, made.certificatePem, { mode: PUBLIC, flag: 'wx' });
  }
  const authority = {
    certificatePem: readFileSync(authorityFile, 'utf8'),
    privateKeyPem: readFileSync(authorityKeyFile, 'utf8'),
  };
  const relay = makeRelayCertificate(authority, { names, nowMs, validDays: CERTIFICATE_DAYS });
  replaceFile(path('relay.key'), relay.privateKeyPem, OWNER_ONLY);
  replaceFile(path('relay.pem'), relay.certificatePem, PUBLIC);
  const host = isIP(names[0]!) === 6 ? `[${names[0]}]` : names[0];
  return `${isNew ? 'made' : 'used'} the site CA ${authorityFile}
made the certificate ${path('relay.pem')} for ${names.join(', ')}, valid for ${CERTIFICATE_DAYS} days

On the relay, in its AgentConfiguration:

relay:
  port: ${port}
  certificateFile: ${path('relay.pem')}
  privateKeyFile: ${path('relay.key')}

On the other machines of the site, with a copy of ${authorityFile}:

heartbeatEndpoint: https://${host}:${port}
heartbeatCertificateAuthorityFile: /etc/nodekeeper/site-ca.pem

Keep ${authorityKeyFile} offline: it is needed for the next certificate only.
`;
}
