/** The result of a run as JSON, signed with Ed25519 when the user names a key. */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { CommandError } from '../command.ts';
import type { Verdict } from './verdict.ts';

export interface ProvedFact extends Verdict {
  readonly id: string;
  readonly sentence: string;
  readonly source: string;
  readonly expected: string;
  /** Absent: it could not be measured. */
  readonly measured?: unknown;
}

export interface Report {
  readonly kind: 'ProveReport';
  /** The release that measured. */
  readonly version: string;
  readonly region: string;
  readonly startedTime: string;
  readonly endedTime: string;
  readonly windowSeconds: number;
  readonly facts: readonly ProvedFact[];
  /** What could not be removed. */
  readonly left: readonly string[];
}

interface SignedReport {
  readonly report: Report;
  /** Over the UTF-8 bytes of JSON.stringify(report). Absent: no key was named. */
  readonly signature?: { readonly algorithm: 'Ed25519'; readonly publicKey: string; readonly value: string };
}

const bytesOf = (report: Report): Buffer => Buffer.from(JSON.stringify(report));
const pemOf = (key: KeyObject): string => createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();

export function textOf(report: Report, key: KeyObject | undefined): string {
  const signed: SignedReport =
    key === undefined
      ? { report }
      : {
          report,
          signature: {
            algorithm: 'Ed25519',
            publicKey: pemOf(key),
            value: sign(null, bytesOf(report), key).toString('base64'),
          },
        };
  return `${JSON.stringify(signed, undefined, 2)}\n`;
}

/** @throws CommandError unless it is a private key of Ed25519 in PEM */
export const readSigningKey = (path: string): KeyObject => readKey(path, createPrivateKey);

/** @param publicKeyPath absent: the key in the report, which says who signed only to those who know it */
export function verifyReport(path: string, publicKeyPath: string | undefined): string {
  const text = readText(path);
  let signed: SignedReport;
  try {
    signed = JSON.parse(text) as SignedReport;
  } catch (cause) {
    throw new CommandError(`${path} is not JSON`, 'pass a report of nodekeeper prove', { cause });
  }
  const { report, signature } = signed;
  if (report?.kind !== 'ProveReport') {
    throw new CommandError(`${path} is no report: kind is ${report?.kind}`, 'pass a report of nodekeeper prove');
  }
  if (signature === undefined) throw new CommandError(`${path} is not signed`, 'measure with --key FILE');
  const key =
    publicKeyPath === undefined ? keyFrom(path, signature.publicKey) : readKey(publicKeyPath, createPublicKey);
  if (!verify(null, bytesOf(report), key, Buffer.from(signature.value, 'base64'))) {
    throw new CommandError(
      `${path}: the signature does not match`,
      'the report was changed after it was signed, or another key signed it',
    );
  }
  const by = publicKeyPath === undefined ? `the key in it:\n${signature.publicKey.trim()}` : publicKeyPath;
  return `${path}: signed by ${by}`;
}

function readKey(path: string, read: (pem: string) => KeyObject): KeyObject {
  const pem = readText(path);
  try {
    const key = read(pem);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch (cause) {
    throw notAKey(path, cause);
  }
  throw notAKey(path);
}

function keyFrom(path: string, pem: string): KeyObject {
  try {
    return createPublicKey(pem);
  } catch (cause) {
    throw notAKey(path, cause);
  }
}

const notAKey = (path: string, cause?: unknown): CommandError =>
  new CommandError(
    `${path} has no key of Ed25519 in PEM`,
    'make one: openssl genpkey -algorithm ed25519 -out FILE; openssl pkey -in FILE -pubout',
    { cause },
  );

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new CommandError(`${path} cannot be read: ${(cause as NodeJS.ErrnoException).code}`, 'check the path', {
      cause,
    });
  }
}
