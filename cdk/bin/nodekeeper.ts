#!/usr/bin/env node
/**
 * Entry of `cdk synth` and `cdk deploy`. Context: `-c name=value`, the names in docs/operations/deploy.md. What
 * breaks a rule ends with one line per fault and exit code 1, before anything is synthesised.
 */
import { InvalidAccessEntriesError } from '../lib/access-entries-source.ts';
import { InvalidPropsError } from '../lib/cluster-options.ts';
import { nodekeeperApp } from '../lib/nodekeeper-app.ts';
import { InvalidPolicyError } from '../lib/policy-source.ts';

try {
  nodekeeperApp().app.synth();
} catch (error) {
  const isFault = [InvalidPolicyError, InvalidAccessEntriesError, InvalidPropsError].some(
    (kind) => error instanceof kind,
  );
  if (!(error instanceof Error && isFault)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
