// Who may import whom (docs/architecture.md has the table). test/imports.test.ts plants a violation to prove this sees.
const shared = (room) => `^(test/fixtures/imports/)?shared/${room}/`;
const only = (name, from, allowed, comment) => ({
  name,
  comment,
  severity: 'error',
  from: { path: from, pathNot: '\\.(test|bench)\\.ts$' },
  to: { pathNot: allowed },
});
/** Plain data about the functions: manifests, the metrics and alarms beside them, and the list of them. */
const MANIFESTS = '^(test/fixtures/imports/)?shared/(function-list|.*/(manifest|metrics|alarms))\\.ts$';
const agent = (rest) => `^(test/fixtures/imports/)?agent/${rest}`;
const npm = (names) => `^node_modules/(${names})(/|$)`;

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-circular',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'not-to-unresolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true, pathNot: '^aws-lambda$' },
    }, // types only: @types/aws-lambda has no code
    only(
      'rules-are-pure',
      [shared('domain'), '^(test/fixtures/imports/)?shared/controllers/.*(^|/)(rule|[^/]+\\.rule)\\.ts$'],
      [
        shared('domain'),
        shared('kube'),
        '^(test/fixtures/imports/)?shared/controllers/.*(^|/)(rule|[^/]+\\.rule)\\.ts$',
      ],
      'Rules: no I/O, no SDK, no clock; Node built-ins included.',
    ),
    only(
      'decisions-are-pure',
      [
        '^(test/fixtures/imports/)?shared/controllers/[^/]+/decisions\\.ts$',
        '^(test/fixtures/imports/)?shared/decisions/(decision-record|record-parts|replay)\\.ts$',
      ],
      [
        shared('domain'),
        '^(test/fixtures/imports/)?shared/controllers/[^/]+/(rule|[^/]+\\.rule|decisions)\\.ts$',
        '^(test/fixtures/imports/)?shared/decisions/(decision-record|record-parts)\\.ts$',
      ],
      'Records of decisions and their replay run in the CLI too: no I/O, no SDK, no clock.',
    ),
    only(
      'domain-is-vocabulary',
      shared('domain'),
      [shared('domain')],
      'What more than one folder needs; it knows none of them.',
    ),
    only(
      'kube-is-machinery',
      shared('kube'),
      [shared('kube'), shared('domain'), shared('ports')],
      'Kubernetes API machinery without I/O; of ports the types alone, a library at most.',
    ),
    only('ports-are-types', shared('ports'), [shared('ports'), shared('domain'), shared('kube')], 'Ports: types only.'),
    only(
      'store-is-layout',
      shared('store'),
      [shared('store'), shared('ports'), shared('domain'), shared('kube'), '^(node:)?zlib$'],
      'Store: keys and conditions over the ItemStore port; compression of texts.',
    ),
    only(
      'manifests-are-data',
      MANIFESTS,
      [shared('domain'), MANIFESTS],
      'Read by the template and by tools, which must not load what a function runs.',
    ),
    only(
      'heartbeat-is-alone',
      shared('heartbeat'),
      [shared('heartbeat'), shared('store'), shared('ports'), shared('domain'), shared('kube')],
      'The hot path: nothing of the API, nothing of a controller.',
    ),
    only(
      'api-uses-ports',
      shared('api'),
      [shared('(api|heartbeat|store|ports|domain|kube)'), shared('controllers/decisions')],
      'The Kubernetes API: no adapters, no SDK, no process.',
    ),
    only(
      'controllers-use-ports',
      shared('controllers'),
      [
        shared('(controllers|store|ports|domain|kube)'),
        shared('api/kinds'),
        MANIFESTS,
        '^(test/fixtures/imports/)?shared/(api/storage/cluster-objects|heartbeat/lease-kind)\\.ts$',
      ],
      'Controllers: no adapters, no SDK, no process.',
    ),
    only(
      'config-is-schema',
      shared('config'),
      [shared('config'), shared('domain'), npm('zod|yaml')],
      'Config: one schema a process.',
    ),
    only(
      'observability-is-edge',
      shared('observability'),
      [shared('observability'), shared('ports'), npm('@aws-lambda-powertools')],
      'Logger and meter.',
    ),
    {
      name: 'adapters-apart',
      comment:
        'An adapter knows ports, domain, kube, its own SDK and how AWS is spoken to; never another adapter, nor what uses it.',
      severity: 'error',
      from: { path: '^(?:test/fixtures/imports/)?shared/adapters/([^/]+)/' },
      to: {
        path: [shared('(api|controllers|heartbeat)'), shared('adapters'), '^functions/', '^agent/', '^local/', '^cdk/'],
        pathNot: ['^(?:test/fixtures/imports/)?shared/adapters/$1/', shared('adapters/aws-connection')],
      },
    },
    only(
      'aws-connection-is-small',
      shared('adapters/aws-connection'),
      [shared('adapters/aws-connection'), '^(?:node:)?(?:crypto|http|https)$'],
      'What adapters share to speak to AWS: in the bundle of every function, so no library.',
    ),
    {
      name: 'functions-apart',
      comment: 'A function imports shared and the wiring beside the functions, never another function.',
      severity: 'error',
      from: { path: '^functions/([^/]+)' },
      to: {
        path: ['^functions/', '^agent/', '^local/', '^cdk/', '^test/'],
        pathNot: ['^functions/$1/', '^functions/[^/]+\\.ts$'],
      },
    },
    only(
      'agent-rules-are-pure',
      '^agent/rules/',
      ['^agent/(rules|ports)/', '^agent/config\\.ts$', '^shared/(domain|kube|api/kinds)/'],
      'Rules of the node: no I/O, no clock; Node built-ins included.',
    ),
    only(
      'agent-app-uses-ports',
      '^agent/app/',
      ['^agent/(app|rules|ports)/', '^agent/config\\.ts$', '^shared/(domain|kube|ports)/'],
      'The loops of the agent: through ports.',
    ),
    {
      name: 'agent-apart',
      severity: 'error',
      from: { path: '^agent/' },
      to: { path: ['^functions/', '^local/', '^cdk/'] },
    },
    {
      name: 'cli-is-a-client',
      comment: 'Commands of people: rules and machinery, never what runs in the account.',
      severity: 'error',
      from: { path: '^cli/', pathNot: '\\.test\\.ts$' },
      to: {
        path: ['^functions/', '^agent/', '^local/', '^cdk/', '^shared/(api|heartbeat|store|adapters)/', '^test/'],
        pathNot: '^shared/aws/connection/',
      },
    },
    only(
      'console-model-is-pure',
      '^(test/fixtures/imports/)?console/model/',
      ['^console/model/', '^shared/(domain|kube)/'],
      'What the page computes: no browser, no Node, no clock.',
    ),
    only(
      'console-page-runs-in-a-browser',
      '^(test/fixtures/imports/)?console/page/',
      ['^console/(page|model)/', '^shared/(domain|kube)/', '^shared/decisions/decision-record\\.ts$', npm('preact')],
      'The page: no Node, and nothing of its server.',
    ),
    only(
      'console-server-is-a-client',
      '^(test/fixtures/imports/)?console/server/',
      [
        '^console/server/',
        '^shared/(domain|kube)/',
        '^(node:)?(crypto|fs|http|https|net|tls|url|zlib|stream)',
        npm('esbuild'),
      ],
      'The server of the console forwards to the API: nothing of what runs in the account, and nothing of the page.',
    ),
    {
      name: 'local-runs-what-is-deployed',
      comment: 'Local mode takes functions from the synthesised assembly, never by import.',
      severity: 'error',
      from: { path: '^(test/fixtures/imports/)?local/' },
      to: {
        path: ['^functions/', agent('(?!rules/)'), '^shared/(api|controllers|heartbeat|store)/'],
        pathNot: MANIFESTS,
      },
    },
    {
      name: 'fleet-shares-rules-of-the-agent',
      comment: 'Only the simulated machines of local mode decide by the rules of the agent.',
      severity: 'error',
      from: { path: '^(test/fixtures/imports/)?local/(?!fleet/)' },
      to: { path: [agent('rules/')] },
    },
    {
      name: 'simulation-apart',
      comment:
        'Simulations connect adapters to shared, to the rules of the agent and to its ways of sending heartbeats. They start the engine of local mode.',
      severity: 'error',
      from: { path: '^(test/fixtures/imports/)?simulation/' },
      to: {
        path: [
          '^functions/',
          agent('(?!rules/|ports/|app/(relay|heartbeat-door))'),
          '^cdk/',
          '^local/(?!engine/|start-error)',
        ],
      },
    },
    {
      name: 'nothing-rests-on-simulation',
      severity: 'error',
      from: { pathNot: '^(simulation|test|bench)/|\\.test\\.ts$' },
      to: { path: '^simulation/' },
    },
    {
      name: 'cdk-knows-config-and-manifests-only',
      comment: 'Handlers are known to the template by path, never by import.',
      severity: 'error',
      from: { path: '^(test/fixtures/imports/)?cdk/' },
      to: {
        path: ['^functions/', '^agent/', '^local/', '^(test/fixtures/imports/)?shared/(?!config/|domain/)'],
        pathNot: MANIFESTS,
      },
    },
    {
      name: 'scripts-are-programs',
      comment: 'What is deployed, installed or run by users never rests on a script of this repository.',
      severity: 'error',
      from: { pathNot: '^(scripts|test|bench)/|\\.test\\.ts$' },
      to: { path: '^scripts/' },
    },
    {
      name: 'not-from-test',
      comment: 'Scripts may: they drive the whole system as tests do.',
      severity: 'error',
      from: { pathNot: '^(test|bench|scripts)/|\\.test\\.ts$|vitest' },
      to: { path: '^test/' },
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
