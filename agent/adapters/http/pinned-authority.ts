/**
 * The authority of the server by the hash of its public key, as `nodekeeper join-command` prints it. The server
 * presents its authority behind its certificate. Nothing is sent before the hash was compared, and every later
 * connection verifies the whole chain.
 */
import { X509Certificate } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { defined } from '../../../shared/defined.ts';
import { authorityHash } from '../../../shared/host/authority-hash.ts';
import { makeDirectory } from '../../../shared/host/directory.ts';
import { AgentStartError } from '../../app/start-checks.ts';
import type { AgentConfig } from '../../config.ts';
import { bareHost } from './proxy-choice.ts';

/** In the root directory: the authority that was found. Later starts need no server for it. */
export const PINNED_AUTHORITY_FILE = 'authority.pem';
const ANSWER_MS = 10_000;
const CHAIN_MAX = 10;

/** What is read of a certificate that a server presents. `raw` is absent when it presents none. */
interface Issued {
  readonly raw?: Buffer;
  readonly issuerCertificate?: Issued;
}

/** @throws AgentStartError when the server does not answer, or presents no authority of this hash */
export async function withPinnedAuthority(config: AgentConfig): Promise<AgentConfig> {
  const { caHash, certificateAuthority, endpoint, rootDirectory } = config;
  if (caHash === undefined || certificateAuthority !== undefined) return config;
  const presented = await presentedBy(new URL(endpoint)).catch((cause: Error) => {
    throw new AgentStartError(`${endpoint} does not answer: ${cause.message}. Check the address of the join line`, {
      cause,
    });
  });
  const found = presented.find((each) => authorityHash(each) === caHash);
  if (found === undefined) {
    throw new AgentStartError(
      `${endpoint} presents no authority with ${caHash}: the join line belongs to another cluster, or another server ` +
        'answers in its place. Nothing was sent. Print a new line with nodekeeper join-command',
    );
  }
  const pem = new X509Certificate(found).toString();
  try {
    makeDirectory(rootDirectory, 0o700);
    await writeFile(join(rootDirectory, PINNED_AUTHORITY_FILE), pem);
  } catch {
    // The next start asks the server again. A root directory that cannot be used is reported by the start itself.
  }
  return { ...config, certificateAuthority: pem };
}

/** The certificates of the server, as DER. Nothing is verified. */
function presentedBy({ hostname, port }: URL): Promise<Buffer[]> {
  const host = bareHost(hostname);
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: Number(port || 443),
      rejectUnauthorized: false,
      ...defined({ servername: isIP(host) === 0 ? host : undefined }),
    });
    const timer = setTimeout(() => finish(() => reject(new Error(`no answer in ${ANSWER_MS} ms`))), ANSWER_MS);
    const finish = (end: () => void): void => {
      clearTimeout(timer);
      socket.destroy();
      end();
    };
    socket.once('error', (cause) => finish(() => reject(cause)));
    socket.once('secureConnect', () => {
      const found = chainOf(socket.getPeerCertificate(true));
      finish(() => resolve(found));
    });
  });
}

/** A certificate and those of its issuers. The last one is its own issuer, or none is presented. */
export function chainOf(presented: Issued): Buffer[] {
  const found: Buffer[] = [];
  for (let next: Issued | undefined = presented; next?.raw !== undefined; next = next.issuerCertificate) {
    const { raw } = next;
    if (found.length === CHAIN_MAX || found.some((each) => each.equals(raw))) break;
    found.push(raw);
  }
  return found;
}
