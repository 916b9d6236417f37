#!/usr/bin/env node
/**
 * Entry of `cdk synth` and `cdk deploy`. Context: `-c policyFile=policy.yaml -c accessEntriesFile=access.yaml`. What breaks a rule ends with
 * one line a fault and exit code 1, before anything is synthesised.
 */
import { InvalidAccessEntriesError } from '../lib/access-entries-source.ts';
import { nodekeeperApp } from '../lib/nodekeeper-app.ts';
import { InvalidPolicyError } from '../lib/policy-source.ts';

try {
  nodekeeperApp().app.synth();
} catch (error) {
  if (!(error instanceof InvalidPolicyError || error instanceof InvalidAccessEntriesError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
