#!/usr/bin/env node
/**
 * Entry of `cdk synth` and `cdk deploy`. Settings: `context` of cdk.json, the names in docs/operations/deploy.md. What
 * breaks a rule ends with one line per fault and exit code 1, before anything is synthesised.
 */
import { existsSync, readFileSync } from 'node:fs';
import { buildHandlersAhead } from '../lib/handler-bundles.ts';

const bundles = buildHandlersAhead();
// A failure is reported below, after the CDK was loaded.
bundles.catch(() => {});
const [{ InvalidAccessEntriesError }, { InvalidPropsError }, { nodekeeperApp }, { InvalidPolicyError }] =
  await Promise.all([
    import('../lib/access-entries-source.ts'),
    import('../lib/cluster-options.ts'),
    import('../lib/nodekeeper-app.ts'),
    import('../lib/policy-source.ts'),
  ]);
await bundles;

try {
  // The file is that of the working directory, where the CLI reads it, too.
  const { context = {} } = (existsSync('cdk.json') ? JSON.parse(readFileSync('cdk.json', 'utf8')) : {}) as {
    context?: Record<string, unknown>;
  };
  nodekeeperApp({ recorded: context }).app.synth();
} catch (error) {
  const isFault = [InvalidPolicyError, InvalidAccessEntriesError, InvalidPropsError].some(
    (kind) => error instanceof kind,
  );
  if (!(error instanceof Error && isFault)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
