/**
 * npm run --silent agent:release -- --file FILE --url URL --key FILE
 *
 * Prints an AgentRelease for a built agent, signed with a private key of Ed25519. `--new-key FILE` makes such a key,
 * and FILE.pub for the machines.
 */
import { execFileSync } from 'node:child_process';
import { createHash, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { signedDowngrade, signedStatement } from '../agent/rules/update-check.ts';
import { defined } from '../shared/defined.ts';

const USAGE = `Usage: npm run --silent agent:release -- --file FILE --url URL --key FILE [--name NAME] [--allow-downgrade]
       npm run --silent agent:release -- --new-key FILE

  --file FILE        the built agent (npm run agent:build)
  --url URL          where the machines download it
  --key FILE         private key in PEM
  --name NAME        name of the AgentRelease (agent)
  --allow-downgrade  machines that run a newer version install it, too
  --new-key FILE     makes a private key, and FILE.pub for install.sh --update-key
`;

const OWNER_ONLY = 0o600;

interface ReleaseInput {
  readonly name: string;
  readonly version: string;
  readonly url: string;
  readonly bytes: Uint8Array;
  /** Private key in PEM. */
  readonly key: string;
  readonly allowsDowngrade: boolean;
}

function agentReleaseOf({ name, version, url, bytes, key, allowsDowngrade }: ReleaseInput) {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const signed = (statement: string): string =>
    sign(null, Buffer.from(statement), createPrivateKey(key)).toString('base64');
  const signature = signed(signedStatement({ version, sha256 }));
  const downgradeSignature = allowsDowngrade ? signed(signedDowngrade({ version, sha256 })) : undefined;
  return {
    apiVersion: 'nodekeeper.dev/v1alpha1',
    kind: 'AgentRelease',
    metadata: { name },
    spec: {
      version,
      artifacts: [{ url, sha256, signature, ...defined({ downgradeSignature }), sizeBytes: bytes.length }],
      ...(allowsDowngrade ? { allowDowngrade: true } : {}),
    },
  };
}

function makeKey(path: string): void {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  writeFileSync(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: OWNER_ONLY, flag: 'wx' });
  writeFileSync(`${path}.pub`, publicKey.export({ type: 'spki', format: 'pem' }), { flag: 'wx' });
}

function main(): number {
  const { values } = parseArgs({
    options: {
      file: { type: 'string' },
      url: { type: 'string' },
      key: { type: 'string' },
      name: { type: 'string', default: 'agent' },
      'allow-downgrade': { type: 'boolean', default: false },
      'new-key': { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const { file, url, key, name, 'new-key': newKey, 'allow-downgrade': allowsDowngrade } = values;
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  if (newKey !== undefined) {
    makeKey(newKey);
    return 0;
  }
  if (file === undefined || url === undefined || key === undefined || !statSync(file).isFile()) {
    process.stderr.write(USAGE);
    return 2;
  }
  const version = execFileSync(process.execPath, [file, '--version'], { encoding: 'utf8' }).trim();
  const bytes = readFileSync(file);
  const release = agentReleaseOf({ name, version, url, bytes, key: readFileSync(key, 'utf8'), allowsDowngrade });
  process.stdout.write(stringify(release));
  return 0;
}

if (import.meta.main) process.exitCode = main();
