/** What the cluster said when this machine was enrolled: kept, so that a restart needs no bootstrap token. */
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const schema = z.object({
  clusterId: z.string(),
  nodeName: z.string(),
  keyId: z.string(),
  /** Names the bootstrap token that was spent; its secret is not kept. */
  bootstrapTokenId: z.string(),
  nodeLabels: z.record(z.string(), z.string()),
});

export type Enrolment = Readonly<z.infer<typeof schema>>;

const FILE = 'node-identity.json';

/** Undefined when there is none. One that cannot be read counts as none: enrolling again with the same key is harmless. */
export async function readEnrolment(rootDirectory: string): Promise<Enrolment | undefined> {
  let text: string;
  try {
    text = await readFile(join(rootDirectory, FILE), 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw cause;
  }
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

export async function writeEnrolment(rootDirectory: string, enrolment: Enrolment): Promise<void> {
  const path = join(rootDirectory, FILE);
  const temporary = `${path}.new`;
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(`${JSON.stringify(enrolment, undefined, 2)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}
