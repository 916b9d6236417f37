/** The cluster's answer to the enrolment of this machine. It is kept, so a restart needs no bootstrap token. */
import { join } from 'node:path';
import { isRecord } from '../../../shared/kubernetes/normal-form.ts';
import { readFile } from '../system/files.ts';
import { replaceFile } from '../system/state-file.ts';

export interface Enrolment {
  readonly clusterId: string;
  readonly nodeName: string;
  readonly keyId: string;
  /** Id of the bootstrap token that was used. Its secret is not kept. */
  readonly bootstrapTokenId: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
}

const FILE = 'node-identity.json';
const OWNER_ONLY = 0o600;

/** Undefined if there is none, or if it is malformed: enrolling the same key again is harmless. */
export async function readEnrolment(rootDirectory: string): Promise<Enrolment | undefined> {
  let text: string;
  try {
    text = await readFile(join(rootDirectory, FILE), 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw cause;
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isEnrolment(value) ? value : undefined;
}

// Checked without a schema library, which would be half of the agent's bundle.
const isEnrolment = (value: unknown): value is Enrolment =>
  isRecord(value) &&
  [value['clusterId'], value['nodeName'], value['keyId'], value['bootstrapTokenId']].every(
    (each) => typeof each === 'string',
  ) &&
  isRecord(value['nodeLabels']) &&
  Object.values(value['nodeLabels']).every((label) => typeof label === 'string');

export const writeEnrolment = (rootDirectory: string, enrolment: Enrolment): Promise<void> =>
  replaceFile(join(rootDirectory, FILE), `${FILE}.new`, `${JSON.stringify(enrolment, undefined, 2)}\n`, OWNER_ONLY);
