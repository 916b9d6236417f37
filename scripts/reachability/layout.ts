/** The folders that run in production, and those that run beside it. */
export interface Layout {
  /** Folders with code that must be reached from `entries`. */
  readonly product: readonly string[];
  /** Programs that users or AWS start. Globs. */
  readonly entries: readonly string[];
  /** Folders that may use all of the product, and are checked for their own code only. */
  readonly tools: readonly string[];
  readonly toolEntries: readonly string[];
  /** Folders of the product that exist for the tools. */
  readonly forTools: readonly string[];
}

export const layout: Layout = {
  product: ['shared', 'functions', 'cdk', 'cli', 'agent', 'local', 'console'],
  entries: [
    'functions/*/handler.ts',
    'cdk/bin/*.ts',
    'cli/bin/*.ts',
    'agent/bin/nodekeeper-agent.ts',
    'agent/bin/start-agent.ts',
    'local/bin/{start,fleet,cloud}.ts',
    'console/page/main.ts',
  ],
  tools: ['simulation', 'bench', 'scripts'],
  toolEntries: [
    'simulation/bin/*.ts',
    'bench/run.ts',
    'bench/cost/run.ts',
    'scripts/build-agent.ts',
    'scripts/e2e-upstream/run.ts',
    'scripts/template-size.ts',
    'scripts/iam/prove.ts',
    'scripts/mutants/run.ts',
    'scripts/protobuf/generate.ts',
    'scripts/reachability/run.ts',
    'scripts/wording/check.ts',
  ],
  // The tables and the cloud of the simulation.
  forTools: ['shared/adapters/memory'],
};
