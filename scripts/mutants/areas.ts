/**
 * The areas of a mutation run: which files are changed, and which files are not (paths from the root, as globs).
 * When a folder moves, this table is the one place to edit.
 */
import { globSync } from 'node:fs';

interface Globs {
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

/** Who may do what: sign-in, authorisation, admission for nodes, enrolment. */
const ACCESS = [
  'shared/access/**/*.ts',
  'functions/api/{access,admission}/*.ts',
  'shared/kinds/identities/storage.ts',
  'shared/kubernetes/log-throttle.ts',
  'shared/fleet/instances/instance-confirmation.ts',
];

export const AREAS: Readonly<Record<string, Globs>> = {
  controllers: {
    include: [
      'functions/{cloud-node,evictor,node-marker,node-monitor,object-stream,pod-gc,scheduler,workloads}/**/*.ts',
      'shared/{fleet,ticks,decisions,scheduling,events}/**/*.ts',
    ],
    exclude: ACCESS,
  },
  store: { include: ['shared/store/**/*.ts', 'shared/aws/dynamodb-*.ts'], exclude: [] },
  access: { include: ACCESS, exclude: [] },
  agent: { include: ['agent/{rules,app,adapters}/**/*.ts'], exclude: [] },
};

/**
 * Tests that may detect a mutant. Those that start programs, bundles or a synthesis never load the changed module. Left
 * out too: stories, races, histories, fuzz and sweeps of several seconds each, and a test that changes the user of its
 * process, because these run in threads. What only they detect lacks a test beside its file.
 */
export const TESTS: Globs = {
  include: [
    '{shared,functions,agent}/**/*.test.ts',
    'cli/replay.test.ts',
    'test/{agent,conformance,contract,controllers,property}/**/*.test.ts',
  ],
  exclude: [
    'agent/bin/images.test.ts',
    'test/agent/{disk-faults,key-rotation,offline-month,windows}.test.ts',
    'test/conformance/{access-matrix,machine-supplied-values,scheduler-other-pods,scheduler-queue}.test.ts',
    'test/conformance/validation/*.test.ts',
    'test/contract/{*-race,hub-price,item-store}.test.ts',
    'test/controllers/{laws,one-bad-object}.test.ts',
    'test/property/{api-fuzz,cost-of-changes,linear-work,pod-gc,replica}.test.ts',
  ],
};

/** Paths from `root`, sorted. */
export function filesOf(root: string, { include, exclude }: Globs): string[] {
  const left = new Set(exclude.flatMap((glob) => globSync(glob, { cwd: root })));
  const found = include.flatMap((glob) => globSync(glob, { cwd: root }));
  return [...new Set(found)].filter((file) => !left.has(file)).sort();
}

/** Code of the product in an area. @throws Error when the area is unknown or one of its globs matches nothing */
export function sourcesOf(root: string, area: string): string[] {
  const globs = AREAS[area];
  if (globs === undefined) throw new Error(`unknown area ${area}: one of ${Object.keys(AREAS).join(', ')}`);
  for (const glob of [...globs.include, ...globs.exclude]) {
    if (globSync(glob, { cwd: root }).length === 0) throw new Error(`${glob} of area ${area} matches no file`);
  }
  return filesOf(root, globs).filter((file) => !/\.(test|bench)\.ts$/.test(file));
}
