// Who may import whom (docs/architecture.md). test/imports.test.ts plants a violation of each rule.
const root = '^(?:test/fixtures/imports/)?';
const PROGRAMS_OF_USERS = 'functions|server|agent|cli|console|demo|aws-local|cdk';
const PROGRAMS = `(${PROGRAMS_OF_USERS}|simulation)/`;
const TOOLS = '^(scripts|bench|test/[^f])';
const TESTS = '\\.(test|bench)\\.ts$';
/** Plain data about the functions: manifests, the metrics and alarms beside them, and the list of them. */
const MANIFESTS = `${root}functions/(function-list|.*/(manifest|metrics|alarms))\\.ts$`;
/** Files that decide. */
const RULES = [
  `${root}(shared|functions)/.*[/.]rule\\.ts$`,
  `${root}functions/.*/decisions\\.ts$`,
  '^agent/rules/',
  '^console/model/',
];

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    { name: 'no-circular', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'not-to-unresolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true, pathNot: '^aws-lambda$' },
    }, // types only: @types/aws-lambda has no code
    {
      name: 'shared-knows-no-program',
      comment: 'What several programs need, in the folder of its noun. It never imports one of them.',
      severity: 'error',
      from: { path: `${root}shared/`, pathNot: TESTS },
      to: { path: [`${root}${PROGRAMS}`, TOOLS] },
    },
    {
      name: 'functions-apart',
      comment: 'A function imports shared and itself: its folder holds all that only it runs.',
      severity: 'error',
      from: { path: `${root}functions/([^/]+)/`, pathNot: TESTS },
      to: { path: [`${root}${PROGRAMS}`, TOOLS], pathNot: `${root}functions/$1/` },
    },
    {
      name: 'serving-is-for-the-api',
      comment:
        'Columns, schemas and validation of every kind are half of a bundle. A controller loads resource.ts. Workloads ' +
        'load them on demand, with admission policies; test/cdk/synth.test.ts bounds what a cold start reads.',
      severity: 'error',
      from: { path: `${root}functions/(?!api/|watch/|workloads/)`, pathNot: TESTS },
      to: {
        path: [
          `${root}shared/kinds/[^/]+/serve\\.ts$`,
          `${root}shared/kinds/(registry|upstream|generated/type-table)\\.ts$`,
        ],
        reachable: true,
      },
    },
    {
      name: 'validation-is-for-who-creates',
      comment: 'The heartbeat validates Leases, and workloads the pods that they create.',
      severity: 'error',
      from: { path: `${root}functions/(?!api/|watch/|heartbeat/|workloads/)`, pathNot: TESTS },
      to: { path: [`${root}shared/kinds/validate`, `${root}shared/kinds/[^/]+/validate`], reachable: true },
    },
    {
      name: 'rules-are-pure',
      comment:
        'What decides has no I/O, no SDK, no clock. Node built-ins, libraries, stores and adapters are none of it.',
      severity: 'error',
      from: { path: RULES, pathNot: TESTS },
      to: {
        dependencyTypesNot: ['type-only'],
        path: [
          // Modules of Node: the only ones without a dot in their names.
          '^[a-z_/]+$',
          '^node_modules/',
          '^shared/(aws|observability|clock|store/(object-store|change-log|item-store|memory))',
          '/(work|reconcile|handler|compose)\\.ts$',
          '-store\\.ts$',
        ],
      },
    },
    {
      name: 'io-has-its-place',
      comment:
        'In shared, libraries and modules of Node are for what is outside: AWS, the machine, logs, configuration, keys, stored bytes.',
      severity: 'error',
      from: {
        path: `${root}shared/`,
        pathNot: [
          TESTS,
          '^shared/(aws|host|observability|config|store)/',
          '^shared/access/(account-tokens|bearer|bootstrap-token|node-tokens|process-keys|public-keys|watch-tickets|api-authorities)\\.ts$',
          '^shared/(gzip|patterns)\\.ts$',
        ],
      },
      to: { path: ['^[a-z_/]+$', '^node_modules/'] },
    },
    {
      name: 'clients-use-the-api',
      comment:
        'The agent and the commands of people run nothing of the account; they share rules and records of decisions. `nodekeeper serve` is the account itself, loaded by the list of commands.',
      severity: 'error',
      from: { path: `${root}(agent|cli|console)/`, pathNot: [TESTS, '^cli/bin/nodekeeper\\.ts$'] },
      to: {
        path: [`${root}(aws-local|demo|server|cdk|functions)/`, `${root}shared/(store|api|aws)/`],
        pathNot: [
          '^functions/.*(decisions|rule)\\.ts$',
          '^shared/aws/((connection|signed-post)\\.ts$|cloudformation/)',
        ],
      },
    },
    {
      name: 'manifests-are-data',
      comment: 'Read by the template and by tools, which must not load what a function runs.',
      severity: 'error',
      from: { path: MANIFESTS },
      to: { pathNot: [MANIFESTS, `${root}shared/`] },
    },
    {
      name: 'deployed-by-path',
      comment: 'The template and the emulation of AWS know functions by manifest and by path, never by import.',
      severity: 'error',
      from: { path: `${root}(cdk|aws-local)/`, pathNot: TESTS },
      to: {
        path: [`${root}(functions|server)/`, `${root}agent/(?!rules/)`],
        pathNot: [MANIFESTS, '^functions/heartbeat/environment\\.ts$'],
      },
    },
    {
      name: 'page-runs-in-a-browser',
      comment: 'No Node, and nothing of its server.',
      severity: 'error',
      from: { path: `${root}console/(page|model)/`, pathNot: TESTS },
      to: { pathNot: ['^console/(page|model)/', '^shared/', '^node_modules/preact/'] },
    },
    {
      name: 'programs-rest-on-no-tool',
      comment: 'What is deployed, installed or run by users never rests on tests, scripts, benches or simulations.',
      severity: 'error',
      from: { path: `${root}(shared|${PROGRAMS_OF_USERS})/`, pathNot: TESTS },
      to: { path: ['^(scripts|bench|test/support)/', '^simulation/'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(cdk\\.out|\\.nodekeeper)/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.json', '.cjs', '.mjs'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
