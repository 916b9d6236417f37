/** Constraints of a pod's spec, which hold for pods and for every template (pkg/apis/core/validation/validation.go). */
import {
  at,
  type Constraint,
  duplicate,
  type Edits,
  type ExpectedCause,
  forbidden,
  invalid,
  leftOut,
  NOT_NEGATIVE,
  notFound,
  on,
  required,
  tooMany,
  unsupported,
} from './constraint.ts';
import { annotations, labels } from './metadata.ts';

const MAIN = 'spec.containers[0]';
const PORT_RANGE = 'must be between 1 and 65535, inclusive';
const FILE_MODE = 'must be a number between 0 and 0777 (octal), both inclusive';
const ID_RANGE = 'must be between 0 and 2147483647, inclusive';
const ANY_IP = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const WEIGHT = 'must be in the range 1-100';
const SEVERAL_VOLUMES = 'may not specify more than 1 volume type';

const main = (field: string, rule: string, value: unknown, cause: ExpectedCause): Constraint =>
  at(`${MAIN}.${field}`, rule, value, cause);

/** Fields that Linux alone has. */
const NOT_ON_WINDOWS: Edits = {
  'spec.hostPID': true,
  'spec.hostIPC': true,
  'spec.hostUsers': true,
  'spec.resources': { limits: { cpu: '1' } },
  'spec.shareProcessNamespace': false,
  'spec.securityContext.appArmorProfile': { type: 'RuntimeDefault' },
  'spec.securityContext.seLinuxOptions': { level: 'l' },
  'spec.securityContext.seccompProfile': { type: 'RuntimeDefault' },
  'spec.securityContext.fsGroup': 1,
  'spec.securityContext.fsGroupChangePolicy': 'Always',
  'spec.securityContext.sysctls': [{ name: 'a.b', value: '1' }],
  'spec.securityContext.runAsUser': 1,
  'spec.securityContext.runAsGroup': 1,
  'spec.securityContext.supplementalGroups': [1],
  'spec.securityContext.supplementalGroupsPolicy': 'Merge',
  [`${MAIN}.securityContext.appArmorProfile`]: { type: 'RuntimeDefault' },
  [`${MAIN}.securityContext.seLinuxOptions`]: { level: 'l' },
  [`${MAIN}.securityContext.seccompProfile`]: { type: 'RuntimeDefault' },
  [`${MAIN}.securityContext.capabilities`]: { drop: ['ALL'] },
  [`${MAIN}.securityContext.readOnlyRootFilesystem`]: false,
  [`${MAIN}.securityContext.privileged`]: false,
  [`${MAIN}.securityContext.allowPrivilegeEscalation`]: false,
  [`${MAIN}.securityContext.procMount`]: 'Default',
  [`${MAIN}.securityContext.runAsUser`]: 1,
  [`${MAIN}.securityContext.runAsGroup`]: 1,
};
const osFields: Constraint[] = [
  ...Object.entries(NOT_ON_WINDOWS).map(([field, value]) =>
    on(
      field,
      'not with spec.os windows',
      { 'spec.os': { name: 'windows' }, [field]: value },
      forbidden('cannot be set for a windows pod'),
    ),
  ),
  ...['spec', MAIN].map((path) =>
    on(
      `${path}.securityContext.windowsOptions`,
      'not with spec.os linux',
      { 'spec.os': { name: 'linux' }, [`${path}.securityContext.windowsOptions`]: { runAsUserName: 'u' } },
      forbidden('windows options cannot be set for a linux pod'),
    ),
  ),
];

const RULE = { action: 'Restart', exitCodes: { operator: 'In', values: [42] } };
const restarts = (path: string, field: string, rule: string, value: object, cause: ExpectedCause): Constraint =>
  on(`${path}.${field}`, rule, { [path]: { name: 'c', image: 'i', ...value } }, cause);
const rules = (field: string, rule: string, restartPolicyRules: readonly object[], cause: ExpectedCause): Constraint =>
  restarts(MAIN, field, rule, { restartPolicy: 'Never', restartPolicyRules }, cause);

const containers: Constraint[] = [
  at('spec.containers', 'at least one', [], required()),
  main('name', 'set', '', required()),
  main('name', 'a DNS label', 'Main', invalid()),
  on(`spec.containers[1].name`, 'unique', { 'spec.containers[1]': { name: 'main', image: 'i' } }, duplicate()),
  on(
    `spec.initContainers[0].name`,
    'unique among all containers',
    { 'spec.initContainers': [{ name: 'main', image: 'i' }] },
    duplicate(),
  ),
  main('image', 'set', '', required()),
  main(
    'imagePullPolicy',
    'Always, IfNotPresent or Never',
    'Sometimes',
    unsupported('supported values: "Always", "IfNotPresent", "Never"'),
  ),
  main('terminationMessagePolicy', 'File or FallbackToLogsOnError', 'Other', unsupported()),
  ...[MAIN, 'spec.initContainers[0]'].flatMap((path) => [
    restarts(path, 'restartPolicy', 'Always, OnFailure or Never', { restartPolicy: 'Sometimes' }, unsupported()),
    restarts(
      ...([path, 'restartPolicy', 'set beside rules'] as const),
      { restartPolicyRules: [RULE] },
      required('must specify restartPolicy when restart rules are used'),
    ),
  ]),
  rules('restartPolicyRules', 'at most 20', Array(21).fill(RULE), tooMany()),
  rules(
    ...(['restartPolicyRules[0].action', 'Restart or RestartAllContainers'] as const),
    [{ ...RULE, action: 'Terminate' }],
    unsupported('supported values: "Restart", "RestartAllContainers"'),
  ),
  rules('restartPolicyRules[0].exitCodes', 'set', [{ action: 'Restart' }], required('must be specified')),
  rules(
    ...(['restartPolicyRules[0].exitCodes.operator', 'In or NotIn'] as const),
    [{ ...RULE, exitCodes: { operator: 'Equals', values: [1] } }],
    unsupported('supported values: "In", "NotIn"'),
  ),
  rules(
    ...(['restartPolicyRules[0].exitCodes.values', 'at most 255'] as const),
    [{ ...RULE, exitCodes: { operator: 'In', values: Array.from({ length: 256 }, (_, code) => code) } }],
    tooMany(),
  ),
  ...['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'].map((name) =>
    on(
      `spec.initContainers[0].${name}`,
      'only for containers that keep running',
      {
        'spec.initContainers': [
          {
            name: 'i',
            image: 'i',
            [name]: name === 'lifecycle' ? { preStop: { exec: { command: ['a'] } } } : { exec: { command: ['a'] } },
          },
        ],
      },
      forbidden('may not be set for init containers without restartPolicy=Always'),
    ),
  ),
  on(
    'spec.ephemeralContainers',
    'not for a new pod',
    { 'spec.ephemeralContainers': [{ name: 'e', image: 'i' }] },
    { reason: 'FieldValueForbidden' },
  ),
];

const port = (value: object, rule: string, field: string, cause: ExpectedCause): Constraint =>
  on(`${MAIN}.ports[0].${field}`, rule, { [`${MAIN}.ports`]: [{ containerPort: 80, ...value }] }, cause);

const ports: Constraint[] = [
  port({ name: 'a'.repeat(16) }, 'at most 15 characters', 'name', invalid('must be no more than 15 characters')),
  port(
    { name: 'a_b' },
    'letters, digits and hyphens',
    'name',
    invalid('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)'),
  ),
  port({ name: '1' }, 'a letter', 'name', invalid('must contain at least one letter (a-z)')),
  port({ name: 'a--b' }, 'no consecutive hyphens', 'name', invalid('must not contain consecutive hyphens')),
  port({ name: 'a-' }, 'no hyphen at an end', 'name', invalid('must not begin or end with a hyphen')),
  on(
    `${MAIN}.ports[1].name`,
    'unique',
    {
      [`${MAIN}.ports`]: [
        { name: 'a', containerPort: 80 },
        { name: 'a', containerPort: 81 },
      ],
    },
    duplicate(),
  ),
  port({ containerPort: 0 }, 'set', 'containerPort', required()),
  port({ containerPort: 65_536 }, '1 to 65535', 'containerPort', invalid(PORT_RANGE)),
  port({ hostPort: -1 }, '1 to 65535', 'hostPort', invalid(PORT_RANGE)),
  port({ protocol: 'HTTP' }, 'TCP, UDP or SCTP', 'protocol', unsupported('supported values: "SCTP", "TCP", "UDP"')),
  on(
    `${MAIN}.ports[1].hostPort`,
    'unique by protocol and address',
    {
      [`${MAIN}.ports`]: [
        { containerPort: 80, hostPort: 80 },
        { containerPort: 81, hostPort: 80 },
      ],
    },
    duplicate(),
  ),
  on(
    `${MAIN}.ports[0].hostPort`,
    'the container port with hostNetwork',
    { 'spec.hostNetwork': true, [`${MAIN}.ports`]: [{ containerPort: 80, hostPort: 81 }] },
    invalid('must match `containerPort` when `hostNetwork` is true'),
  ),
];

const env = (variable: object, field: string, rule: string, cause: ExpectedCause): Constraint =>
  on(`${MAIN}.env[0].${field}`, rule, { [`${MAIN}.env`]: [{ name: 'A', ...variable }] }, cause);
const valueFrom = (source: object, field: string, rule: string, cause: ExpectedCause): Constraint =>
  env({ valueFrom: source }, `valueFrom${field}`, rule, cause);

const environment: Constraint[] = [
  env({ name: '' }, 'name', 'set', required()),
  env({ name: '1 a' }, 'name', 'the name of a variable', invalid()),
  env(
    { value: 'x', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    'valueFrom',
    'not with a value',
    invalid('may not be specified when `value` is not empty'),
  ),
  valueFrom(
    {},
    '',
    'has a source',
    invalid('must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`'),
  ),
  valueFrom(
    { fieldRef: { fieldPath: 'metadata.name' }, resourceFieldRef: { resource: 'limits.cpu' } },
    '',
    'has one source',
    invalid('may not have more than one field specified at a time'),
  ),
  valueFrom({ fieldRef: { fieldPath: '' } }, '.fieldRef.fieldPath', 'set', required()),
  valueFrom(
    { fieldRef: { fieldPath: 'metadata.color' } },
    '.fieldRef.fieldPath',
    'a field of a pod',
    invalid('error converting fieldPath: field label not supported: metadata.color'),
  ),
  valueFrom(
    { fieldRef: { fieldPath: 'metadata.labels' } },
    '.fieldRef.fieldPath',
    'a field that variables may have',
    unsupported(),
  ),
  valueFrom({ fieldRef: { fieldPath: "metadata.labels['a b']" } }, '.fieldRef', 'the key of a label', invalid()),
  valueFrom(
    { fieldRef: { fieldPath: "metadata.name['a']" } },
    '.fieldRef',
    'subscripts of labels and annotations',
    invalid('does not support subscript'),
  ),
  valueFrom({ resourceFieldRef: { resource: '' } }, '.resourceFieldRef.resource', 'set', required()),
  valueFrom(
    { resourceFieldRef: { resource: 'limits.disk' } },
    '.resourceFieldRef.resource',
    'a resource of containers',
    unsupported(),
  ),
  valueFrom(
    { resourceFieldRef: { resource: 'limits.cpu', divisor: '2' } },
    '.resourceFieldRef.divisor',
    '1 or 1m for CPU',
    invalid("only divisor's values 1m and 1 are supported with the cpu resource"),
  ),
  ...['configMapKeyRef', 'secretKeyRef'].flatMap((name) => [
    valueFrom({ [name]: { name: 'A_B', key: 'k' } }, `.${name}.name`, 'a DNS subdomain', invalid()),
    valueFrom({ [name]: { name: 'a', key: '' } }, `.${name}.key`, 'set', required()),
    valueFrom({ [name]: { name: 'a', key: 'k k' } }, `.${name}.key`, 'the key of a ConfigMap', invalid()),
  ]),
  on(
    `${MAIN}.envFrom[0].prefix`,
    'the start of a name',
    { [`${MAIN}.envFrom`]: [{ prefix: '1 ', configMapRef: { name: 'c' } }] },
    invalid(),
  ),
  on(
    `${MAIN}.envFrom`,
    'has a source',
    { [`${MAIN}.envFrom`]: [{}] },
    invalid('must specify one of: `configMapRef` or `secretRef`'),
  ),
  on(
    `${MAIN}.envFrom`,
    'has one source',
    { [`${MAIN}.envFrom`]: [{ configMapRef: { name: 'c' }, secretRef: { name: 's' } }] },
    invalid('may not have more than one field specified at a time'),
  ),
  on(
    `${MAIN}.envFrom[0].configMapRef.name`,
    'a DNS subdomain',
    { [`${MAIN}.envFrom`]: [{ configMapRef: { name: 'A_B' } }] },
    invalid(),
  ),
  on(
    `${MAIN}.envFrom[0].secretRef.name`,
    'a DNS subdomain',
    { [`${MAIN}.envFrom`]: [{ secretRef: { name: 'A_B' } }] },
    invalid(),
  ),
];

const probe = (name: string, value: object, field: string, rule: string, cause: ExpectedCause): Constraint =>
  on(`${MAIN}.${name}${field}`, rule, { [`${MAIN}.${name}`]: value }, cause);
const exec = { exec: { command: ['true'] } };

const probes: Constraint[] = [
  probe('livenessProbe', {}, '', 'has a handler', required('must specify a handler type')),
  probe(
    'livenessProbe',
    { ...exec, tcpSocket: { port: 1 } },
    '.tcpSocket',
    'has one handler',
    forbidden('may not specify more than 1 handler type'),
  ),
  probe('livenessProbe', { exec: { command: [] } }, '.exec.command', 'set', required()),
  probe('livenessProbe', { httpGet: { port: 0 } }, '.httpGet.port', '1 to 65535', invalid(PORT_RANGE)),
  probe(
    'livenessProbe',
    { httpGet: { port: 'a_b' } },
    '.httpGet.port',
    'the name of a port',
    invalid('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)'),
  ),
  probe(
    'livenessProbe',
    { httpGet: { port: 80, scheme: 'FTP' } },
    '.httpGet.scheme',
    'HTTP or HTTPS',
    unsupported('supported values: "HTTP", "HTTPS"'),
  ),
  probe(
    'livenessProbe',
    { httpGet: { port: 80, httpHeaders: [{ name: 'a b', value: '' }] } },
    '.httpGet.httpHeaders',
    'names of headers',
    invalid(),
  ),
  probe('livenessProbe', { tcpSocket: { port: 65_536 } }, '.tcpSocket.port', '1 to 65535', invalid(PORT_RANGE)),
  probe('livenessProbe', { grpc: { port: 0 } }, '.grpc.port', '1 to 65535', invalid(PORT_RANGE)),
  ...['initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold'].map((name) =>
    probe('readinessProbe', { ...exec, [name]: -1 }, `.${name}`, 'at least 0', invalid(NOT_NEGATIVE)),
  ),
  probe('livenessProbe', { ...exec, successThreshold: 2 }, '.successThreshold', '1', invalid('must be 1')),
  probe('startupProbe', { ...exec, successThreshold: 2 }, '.successThreshold', '1', invalid('must be 1')),
  probe(
    'livenessProbe',
    { ...exec, terminationGracePeriodSeconds: 0 },
    '.terminationGracePeriodSeconds',
    'greater than 0',
    invalid('must be greater than 0'),
  ),
  probe(
    'readinessProbe',
    { ...exec, terminationGracePeriodSeconds: 5 },
    '.terminationGracePeriodSeconds',
    'not set',
    invalid('must not be set for readinessProbes'),
  ),
  probe('lifecycle', { preStop: {} }, '.preStop', 'has a handler', required('must specify a handler type')),
  probe('lifecycle', { postStart: { exec: { command: [] } } }, '.postStart.exec.command', 'set', required()),
  probe(
    'lifecycle',
    { preStop: { sleep: { seconds: 31 } } },
    '.preStop.sleep.seconds',
    'less than the grace period',
    invalid(),
  ),
];

const amounts = (resources: object, field: string, rule: string, cause: ExpectedCause): Constraint =>
  on(`${MAIN}.resources${field}`, rule, { [`${MAIN}.resources`]: resources }, cause);

const CPU_POLICY = { resourceName: 'cpu', restartPolicy: 'NotRequired' };
const resize = (policy: object, rule: string, cause: ExpectedCause): Constraint =>
  at(`${MAIN}.resizePolicy`, rule, [{ ...CPU_POLICY, ...policy }], cause);

const resources: Constraint[] = [
  amounts({ limits: { cpu: '-1' } }, '.limits[cpu]', 'at least 0', invalid(NOT_NEGATIVE)),
  amounts({ requests: { memory: '-1' } }, '.requests[memory]', 'at least 0', invalid(NOT_NEGATIVE)),
  amounts(
    { limits: { disk: '1' } },
    '.limits[disk]',
    'a resource of containers',
    invalid('must be a standard resource for containers'),
  ),
  amounts({ limits: { 'a b/c': '1' } }, '.limits[a b/c]', 'a qualified name', invalid()),
  amounts(
    { limits: { 'example.com/gpu': '1500m' } },
    '.limits[example.com/gpu]',
    'whole numbers of extended resources',
    invalid('must be an integer'),
  ),
  amounts(
    { limits: { 'requests.example.com/gpu': '1' } },
    '.limits[requests.example.com/gpu]',
    'the name of an extended resource',
    invalid("doesn't follow extended resource name standard"),
  ),
  amounts(
    { limits: { cpu: '1' }, requests: { cpu: '2' } },
    '.requests',
    'at most the limit',
    invalid('must be less than or equal to cpu limit of 1'),
  ),
  amounts(
    { limits: { 'example.com/gpu': '2' }, requests: { 'example.com/gpu': '1' } },
    '.requests',
    'the limit of an extended resource',
    invalid('must be equal to example.com/gpu limit of 2'),
  ),
  amounts(
    { requests: { 'example.com/gpu': '1' } },
    '.limits',
    'set for extended resources',
    required('Limit must be set for non overcommitable resources'),
  ),
  amounts(
    { limits: { 'hugepages-2Mi': '2Mi' } },
    '',
    'CPU or memory with huge pages',
    forbidden('HugePages require cpu or memory'),
  ),
  leftOut(`${MAIN}.resources.limits[hugepages-*]`, 'a multiple of the page size', 'no machine here offers huge pages'),
  leftOut(`${MAIN}.resources.claims`, 'names of resourceClaims', 'resource claims are not served'),
  resize({ resourceName: 'x' }, 'known resources', unsupported('supported values: "cpu", "memory"')),
  resize({ resourceName: '' }, 'a resource', required()),
  resize({ restartPolicy: 'x' }, 'known policies', unsupported('supported values: "NotRequired", "RestartContainer"')),
  resize({ restartPolicy: '' }, 'a policy', required()),
  on(
    `${MAIN}.resizePolicy`,
    'no restart where containers are not restarted',
    {
      [`${MAIN}.resizePolicy`]: [{ ...CPU_POLICY, restartPolicy: 'RestartContainer' }],
      [`${MAIN}.restartPolicy`]: 'Never',
    },
    invalid("must be 'NotRequired' when `restartPolicy` is 'Never'"),
  ),
  on(
    `${MAIN}.resizePolicy`,
    'each resource once',
    { [`${MAIN}.resizePolicy`]: [CPU_POLICY, CPU_POLICY] },
    duplicate(undefined, `${MAIN}.resizePolicy[1]`),
  ),
];

const volume = (source: object, field: string, rule: string, cause: ExpectedCause): Constraint =>
  on(`spec.volumes[0]${field}`, rule, { 'spec.volumes': [{ name: 'v', ...source }] }, cause);
const projected = (sources: object[], field: string, rule: string, cause: ExpectedCause): Constraint =>
  volume({ projected: { sources } }, `.projected${field}`, rule, cause);

const volumes: Constraint[] = [
  volume({ name: '', emptyDir: {} }, '.name', 'set', required()),
  volume({ name: 'V', emptyDir: {} }, '.name', 'a DNS label', invalid()),
  on(
    'spec.volumes[1].name',
    'unique',
    {
      'spec.volumes': [
        { name: 'v', emptyDir: {} },
        { name: 'v', emptyDir: {} },
      ],
    },
    duplicate(),
  ),
  volume({ emptyDir: {}, hostPath: { path: '/a' } }, '.hostPath', 'one source', forbidden(SEVERAL_VOLUMES)),
  volume(
    { emptyDir: { sizeLimit: '-1' } },
    '.emptyDir.sizeLimit',
    'at least 0',
    forbidden('SizeLimit field must be a valid resource quantity'),
  ),
  volume({ hostPath: { path: '' } }, '.hostPath.path', 'set', required()),
  volume({ hostPath: { path: '/a/../b' } }, '.hostPath.path', 'no ..', invalid("must not contain '..'")),
  volume({ hostPath: { path: '/a', type: 'Pipe' } }, '.hostPath.type', 'a known type', unsupported()),
  volume({ secret: {} }, '.secret.secretName', 'set', required()),
  volume({ configMap: {} }, '.configMap.name', 'set', required()),
  volume({ persistentVolumeClaim: { claimName: '' } }, '.persistentVolumeClaim.claimName', 'set', required()),
  ...(['secret', 'configMap'] as const).flatMap((name) => {
    const named = name === 'secret' ? { secretName: 's' } : { name: 's' };
    const item = (value: object) => ({ [name]: { ...named, items: [{ key: 'k', path: 'p', ...value }] } });
    return [
      volume({ [name]: { ...named, defaultMode: 0o1000 } }, `.${name}.defaultMode`, '0 to 0777', invalid(FILE_MODE)),
      volume(item({ key: '' }), `.${name}.items[0].key`, 'set', required()),
      volume(item({ path: '' }), `.${name}.items[0].path`, 'set', required()),
      volume(item({ path: '/p' }), `.${name}.items[0].path`, 'relative', invalid('must be a relative path')),
      volume(item({ path: 'a/../b' }), `.${name}.items[0].path`, 'no ..', invalid("must not contain '..'")),
      volume(
        item({ path: '..p' }),
        `.${name}.items[0].path`,
        'no .. at its start',
        invalid("must not start with '..'"),
      ),
      volume(item({ mode: -1 }), `.${name}.items[0].mode`, '0 to 0777', invalid(FILE_MODE)),
    ];
  }),
  volume(
    { downwardAPI: { items: [{ path: 'p' }] } },
    '.downwardAPI',
    'items have a source',
    required('one of fieldRef and resourceFieldRef is required'),
  ),
  volume(
    { downwardAPI: { items: [{ path: 'p', fieldRef: { fieldPath: 'status.podIP' } }] } },
    '.downwardAPI.fieldRef.fieldPath',
    'a field that files may have',
    unsupported(),
  ),
  volume(
    { downwardAPI: { items: [{ path: 'p', resourceFieldRef: { resource: 'limits.cpu' } }] } },
    '.downwardAPI.resourceFieldRef.containerName',
    'set',
    required(),
  ),
  volume({ downwardAPI: { defaultMode: -1, items: [] } }, '.downwardAPI.defaultMode', '0 to 0777', invalid(FILE_MODE)),
  volume({ projected: { defaultMode: -1, sources: [] } }, '.projected.defaultMode', '0 to 0777', invalid(FILE_MODE)),
  projected([{ secret: { name: '' } }], '.sources[0].secret.name', 'set', required()),
  projected([{ configMap: { name: '' } }], '.sources[0].configMap.name', 'set', required()),
  projected(
    [{ serviceAccountToken: { path: 't', expirationSeconds: 599 } }],
    '.sources[0].serviceAccountToken.expirationSeconds',
    'at least 10 minutes',
    invalid('may not specify a duration less than 10 minutes'),
  ),
  projected(
    [{ serviceAccountToken: { path: 't', expirationSeconds: 4_294_967_297 } }],
    '.sources[0].serviceAccountToken.expirationSeconds',
    'at most 2^32 seconds',
    invalid('may not specify a duration larger than 2^32 seconds'),
  ),
  projected([{ serviceAccountToken: { path: '' } }], '.path', 'set for a token', required()),
  projected(
    [{ secret: { name: 's' }, configMap: { name: 'c' } }],
    '.sources[0]',
    'one source',
    forbidden(SEVERAL_VOLUMES),
  ),
  projected(
    [
      { secret: { name: 's', items: [{ key: 'k', path: 'p' }] } },
      { configMap: { name: 'c', items: [{ key: 'k', path: 'p' }] } },
    ],
    '',
    'different paths',
    invalid('conflicting duplicate paths'),
  ),
  leftOut(
    'spec.volumes[].nfs, csi, iscsi, ephemeral and 20 others',
    'the fields of each driver',
    'no machine here mounts them; they are stored',
  ),
];

const mount = (value: object, field: string, rule: string, cause: ExpectedCause): Constraint =>
  on(
    `${MAIN}.volumeMounts${field}`,
    rule,
    {
      'spec.volumes': [{ name: 'v', emptyDir: {} }],
      [`${MAIN}.volumeMounts`]: [{ name: 'v', mountPath: '/v', ...value }],
    },
    cause,
  );

const mounts: Constraint[] = [
  mount({ name: '' }, '[0].name', 'set', required()),
  mount({ name: 'w' }, '[0].name', 'the name of a volume', notFound()),
  mount({ mountPath: '' }, '[0].mountPath', 'set', required()),
  on(
    `${MAIN}.volumeMounts[1].mountPath`,
    'unique',
    {
      'spec.volumes': [{ name: 'v', emptyDir: {} }],
      [`${MAIN}.volumeMounts`]: [
        { name: 'v', mountPath: '/v' },
        { name: 'v', mountPath: '/v' },
      ],
    },
    invalid('must be unique'),
  ),
  mount({ subPath: '/a' }, '.subPath', 'relative', invalid('must be a relative path')),
  mount({ subPath: '../a' }, '.subPath', 'no ..', invalid("must not contain '..'")),
  mount(
    { subPath: 'a', subPathExpr: 'b' },
    '[0].subPathExpr',
    'not with subPath',
    invalid('subPathExpr and subPath are mutually exclusive'),
  ),
  mount({ subPathExpr: '../a' }, '.subPathExpr', 'no ..', invalid("must not contain '..'")),
  mount(
    { mountPropagation: 'Other' },
    '.mountPropagation',
    'a known mode',
    unsupported('supported values: "Bidirectional", "HostToContainer", "None"'),
  ),
  mount(
    { mountPropagation: 'Bidirectional' },
    '.mountPropagation',
    'Bidirectional only for privileged containers',
    forbidden('Bidirectional mount propagation is available only to privileged containers'),
  ),
  mount({ recursiveReadOnly: 'Other' }, '.recursiveReadOnly', 'a known mode', unsupported()),
  mount(
    { recursiveReadOnly: 'Enabled' },
    '.recursiveReadOnly',
    'only with readOnly',
    forbidden('may only be specified when readOnly is true'),
  ),
  leftOut(`${MAIN}.volumeDevices`, 'names and paths of block devices', 'no machine here mounts block devices'),
];

const profiles = (path: string): Constraint[] =>
  (['seccompProfile', 'appArmorProfile'] as const).flatMap((name) => {
    const kind = name === 'seccompProfile' ? 'seccomp' : 'AppArmor';
    const field = `${path}.${name}`;
    return [
      on(`${field}.type`, 'set', { [field]: {} }, required(`type is required when ${name} is set`)),
      on(`${field}.type`, 'a known type', { [field]: { type: 'Other' } }, unsupported()),
      on(
        `${field}.localhostProfile`,
        'set with Localhost',
        { [field]: { type: 'Localhost' } },
        required(`must be set when ${kind} type is Localhost`),
      ),
      on(
        `${field}.localhostProfile`,
        'only with Localhost',
        { [field]: { type: 'Unconfined', localhostProfile: 'p' } },
        invalid(`can only be set when ${kind} type is Localhost`),
      ),
    ];
  });

const security: Constraint[] = [
  ...['runAsUser', 'runAsGroup'].flatMap((name) => [
    at(`spec.securityContext.${name}`, '0 to 2^31 - 1', -1, invalid(ID_RANGE)),
    main(`securityContext.${name}`, '0 to 2^31 - 1', 2_147_483_648, invalid(ID_RANGE)),
  ]),
  at('spec.securityContext.fsGroup', '0 to 2^31 - 1', -1, invalid(ID_RANGE)),
  on(
    'spec.securityContext.supplementalGroups[0]',
    '0 to 2^31 - 1',
    { 'spec.securityContext.supplementalGroups': [-1] },
    invalid(ID_RANGE),
  ),
  at(
    'spec.securityContext.fsGroupChangePolicy',
    'Always or OnRootMismatch',
    'Other',
    unsupported('supported values: "Always", "OnRootMismatch"'),
  ),
  on(
    'spec.securityContext.sysctls[0].name',
    'set',
    { 'spec.securityContext.sysctls': [{ name: '', value: '1' }] },
    required(),
  ),
  on(
    'spec.securityContext.sysctls[0].name',
    'the name of a kernel parameter',
    { 'spec.securityContext.sysctls': [{ name: 'A', value: '1' }] },
    invalid(),
  ),
  on(
    'spec.securityContext.sysctls[1].name',
    'unique',
    {
      'spec.securityContext.sysctls': [
        { name: 'a.b', value: '1' },
        { name: 'a.b', value: '1' },
      ],
    },
    duplicate(),
  ),
  ...profiles('spec.securityContext'),
  ...profiles(`${MAIN}.securityContext`),
  main(
    'securityContext.procMount',
    'Default or Unmasked',
    'Other',
    unsupported('supported values: "Default", "Unmasked"'),
  ),
  main(
    'securityContext',
    'a privileged container may escalate',
    { privileged: true, allowPrivilegeEscalation: false },
    invalid('cannot set `allowPrivilegeEscalation` to false and `privileged` to true'),
  ),
  main(
    'securityContext',
    'CAP_SYS_ADMIN may escalate',
    { capabilities: { add: ['CAP_SYS_ADMIN'] }, allowPrivilegeEscalation: false },
    invalid('cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN'),
  ),
  on(
    'spec.securityContext.shareProcessNamespace',
    'not with hostPID',
    { 'spec.hostPID': true, 'spec.shareProcessNamespace': true },
    invalid('ShareProcessNamespace and HostPID cannot both be enabled'),
  ),
  ...osFields,
  leftOut(
    'spec.securityContext.windowsOptions',
    'names of accounts and of credentials, hostProcess for all containers or for none',
    'no machine here runs Windows containers; pods there are processes',
  ),
];

const term = (path: string): Constraint[] => {
  const expressions = (each: object): Edits => ({ [`${path}.matchExpressions`]: [{ key: 'k', ...each }] });
  const fields = (each: object): Edits => ({ [`${path}.matchFields`]: [{ key: 'metadata.name', ...each }] });
  return [
    on(
      `${path}.matchExpressions[0].operator`,
      'known',
      expressions({ operator: 'Like' }),
      invalid('not a valid selector operator'),
    ),
    on(
      `${path}.matchExpressions[0].values`,
      'set with In',
      expressions({ operator: 'In' }),
      required("must be specified when `operator` is 'In' or 'NotIn'"),
    ),
    on(
      `${path}.matchExpressions[0].values`,
      'not with Exists',
      expressions({ operator: 'Exists', values: ['a'] }),
      forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
    ),
    on(
      `${path}.matchExpressions[0].values`,
      'one with Gt',
      expressions({ operator: 'Gt', values: ['1', '2'] }),
      required("must be specified single value when `operator` is 'Lt' or 'Gt'"),
    ),
    on(
      `${path}.matchExpressions[0].key`,
      'a qualified name',
      expressions({ key: 'a b', operator: 'Exists' }),
      invalid(),
    ),
    on(
      `${path}.matchFields[0].key`,
      'metadata.name',
      fields({ key: 'spec.x', operator: 'In', values: ['a'] }),
      invalid('not a valid field selector key'),
    ),
    on(
      `${path}.matchFields[0].operator`,
      'In or NotIn',
      fields({ operator: 'Exists' }),
      invalid('not a valid selector operator'),
    ),
    on(
      `${path}.matchFields[0].values`,
      'one',
      fields({ operator: 'In', values: [] }),
      required("must be only one value when `operator` is 'In' or 'NotIn' for node field selector"),
    ),
  ];
};

const NODE = 'spec.affinity.nodeAffinity';
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

const podAffinity = (path: string): Constraint[] => [
  on(
    `${path}.${REQUIRED}[0].topologyKey`,
    'set',
    { [`${path}.${REQUIRED}`]: [{ topologyKey: '' }] },
    required('can not be empty'),
  ),
  on(
    `${path}.${REQUIRED}[0].topologyKey`,
    'a qualified name',
    { [`${path}.${REQUIRED}`]: [{ topologyKey: 'a b' }] },
    invalid(),
  ),
  on(
    `${path}.${REQUIRED}[0].labelSelector.matchExpressions[0].operator`,
    'known',
    {
      [`${path}.${REQUIRED}`]: [
        { topologyKey: 'z', labelSelector: { matchExpressions: [{ key: 'k', operator: 'Like' }] } },
      ],
    },
    invalid('not a valid selector operator'),
  ),
  on(
    `${path}.${REQUIRED}[0].namespace`,
    'names of namespaces',
    { [`${path}.${REQUIRED}`]: [{ topologyKey: 'z', namespaces: ['A_B'] }] },
    invalid(),
  ),
  on(
    `${path}.${REQUIRED}[0].matchLabelKeys`,
    'only with a labelSelector',
    { [`${path}.${REQUIRED}`]: [{ topologyKey: 'z', matchLabelKeys: ['k'] }] },
    forbidden('must not be specified when labelSelector is not set'),
  ),
  on(
    `${path}.${PREFERRED}[0].weight`,
    '1 to 100',
    { [`${path}.${PREFERRED}`]: [{ weight: 101, podAffinityTerm: { topologyKey: 'z' } }] },
    invalid(WEIGHT),
  ),
];

const SPREAD = 'spec.topologySpreadConstraints';
const spread = (value: object, field: string, rule: string, cause: ExpectedCause): Constraint =>
  on(
    `${SPREAD}[0].${field}`,
    rule,
    { [SPREAD]: [{ maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule', ...value }] },
    cause,
  );

const toleration = (value: object, field: string, rule: string, cause: ExpectedCause): Constraint =>
  on(`spec.tolerations[0].${field}`, rule, { 'spec.tolerations': [{ key: 'k', ...value }] }, cause);

const scheduling: Constraint[] = [
  ...labels('spec.nodeSelector'),
  at('spec.nodeName', 'a DNS subdomain', 'Not_Valid', invalid()),
  on(
    `${NODE}.${REQUIRED}.nodeSelectorTerms`,
    'at least one',
    { [`${NODE}.${REQUIRED}.nodeSelectorTerms`]: [] },
    required('must have at least one node selector term'),
  ),
  ...term(`${NODE}.${REQUIRED}.nodeSelectorTerms[0]`),
  on(
    `${NODE}.${PREFERRED}[0].weight`,
    '1 to 100',
    { [`${NODE}.${PREFERRED}`]: [{ weight: 0, preference: {} }] },
    invalid(WEIGHT),
  ),
  ...podAffinity('spec.affinity.podAffinity'),
  ...podAffinity('spec.affinity.podAntiAffinity'),
  spread({ maxSkew: 0 }, 'maxSkew', 'greater than 0', invalid('must be greater than zero')),
  spread({ topologyKey: '' }, 'topologyKey', 'set', required('can not be empty')),
  spread({ topologyKey: 'a b' }, 'topologyKey', 'a qualified name', invalid()),
  spread(
    { whenUnsatisfiable: 'Wait' },
    'whenUnsatisfiable',
    'DoNotSchedule or ScheduleAnyway',
    unsupported('supported values: "DoNotSchedule", "ScheduleAnyway"'),
  ),
  spread({ minDomains: 0 }, 'minDomains', 'greater than 0', invalid('must be greater than zero')),
  spread(
    { minDomains: 1, whenUnsatisfiable: 'ScheduleAnyway' },
    'minDomains',
    'only with DoNotSchedule',
    invalid('can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway'),
  ),
  spread(
    { nodeTaintsPolicy: 'Maybe' },
    'nodeTaintsPolicy',
    'Honor or Ignore',
    unsupported('supported values: "Honor", "Ignore"'),
  ),
  spread(
    { nodeAffinityPolicy: 'Maybe' },
    'nodeAffinityPolicy',
    'Honor or Ignore',
    unsupported('supported values: "Honor", "Ignore"'),
  ),
  spread(
    { matchLabelKeys: ['k'] },
    'matchLabelKeys',
    'only with a labelSelector',
    forbidden('must not be specified when labelSelector is not set'),
  ),
  on(
    `${SPREAD}[0].{topologyKey, whenUnsatisfiable}`,
    'unique',
    { [SPREAD]: [0, 1].map(() => ({ maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule' })) },
    duplicate(),
  ),
  toleration({ key: 'a b' }, 'key', 'a qualified name', invalid()),
  toleration(
    { key: '' },
    'operator',
    'Exists without a key',
    invalid('operator must be Exists when `key` is empty, which means "match all values and all keys"'),
  ),
  toleration(
    { operator: 'Like' },
    'operator',
    'Equal, Exists, Gt or Lt',
    unsupported('supported values: "Equal", "Exists", "Gt", "Lt"'),
  ),
  toleration(
    { operator: 'Gt', value: '007' },
    'value',
    'an integer with Gt and Lt',
    invalid('must be a valid decimal integer in canonical form'),
  ),
  toleration(
    { operator: 'Exists', value: 'v' },
    'operator',
    'no value with Exists',
    invalid("value must be empty when `operator` is 'Exists'"),
  ),
  toleration({ value: 'a b' }, 'operator', 'the value of a label', invalid()),
  toleration({ effect: 'Never' }, 'effect', 'a known effect', unsupported()),
  toleration(
    { effect: 'NoSchedule', tolerationSeconds: 5 },
    'effect',
    'NoExecute with tolerationSeconds',
    invalid("effect must be 'NoExecute' when `tolerationSeconds` is set"),
  ),
  on('spec.schedulingGates[0]', 'qualified names', { 'spec.schedulingGates': [{ name: 'a b' }] }, invalid()),
  on('spec.schedulingGates[1]', 'unique', { 'spec.schedulingGates': [{ name: 'a' }, { name: 'a' }] }, duplicate()),
];

const rest: Constraint[] = [
  at(
    'spec.dnsPolicy',
    'a known policy',
    'Other',
    unsupported('supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"'),
  ),
  on(
    'spec.dnsConfig',
    'set with the policy None',
    { 'spec.dnsPolicy': 'None' },
    required('must provide `dnsConfig` when `dnsPolicy` is None'),
  ),
  on(
    'spec.dnsConfig.nameservers',
    'one with the policy None',
    { 'spec.dnsPolicy': 'None', 'spec.dnsConfig': {} },
    required('must provide at least one DNS nameserver when `dnsPolicy` is None'),
  ),
  at(
    'spec.dnsConfig.nameservers',
    'at most 3',
    ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'],
    invalid('must not have more than 3 nameservers'),
  ),
  on('spec.dnsConfig.nameservers[0]', 'an IP address', { 'spec.dnsConfig.nameservers': ['a'] }, invalid(ANY_IP)),
  at(
    'spec.dnsConfig.searches',
    'at most 32',
    Array.from({ length: 33 }, () => 'a'),
    invalid('must not have more than 32 search paths'),
  ),
  at(
    'spec.dnsConfig.searches',
    'at most 2048 characters',
    Array.from({ length: 10 }, () => 'a'.repeat(250)),
    invalid('must not have more than 2048 characters (including spaces) in the search list'),
  ),
  on('spec.dnsConfig.searches[0]', 'a DNS subdomain', { 'spec.dnsConfig.searches': ['A_B'] }, invalid()),
  on(
    'spec.dnsConfig.options[0]',
    'a name',
    { 'spec.dnsConfig.options': [{ name: '' }] },
    required('must not be empty'),
  ),
  on(
    'spec.hostAliases[0].ip',
    'an IP address',
    { 'spec.hostAliases': [{ ip: 'a', hostnames: ['b'] }] },
    invalid(ANY_IP),
  ),
  on(
    'spec.hostAliases[0].hostnames[0]',
    'a DNS subdomain',
    { 'spec.hostAliases': [{ ip: '10.0.0.1', hostnames: ['A_B'] }] },
    invalid(),
  ),
  at('spec.hostname', 'a DNS label', 'A.b', invalid()),
  at('spec.subdomain', 'a DNS label', 'A.b', invalid()),
  at('spec.terminationGracePeriodSeconds', 'at least 0', -1, invalid(NOT_NEGATIVE)),
  on(
    'spec.readinessGates[0].conditionType',
    'a qualified name',
    { 'spec.readinessGates': [{ conditionType: 'a b' }] },
    invalid(),
  ),
  on('spec.os.name', 'set', { 'spec.os': { name: '' } }, required('cannot be empty')),
  on(
    'spec.os',
    'linux or windows',
    { 'spec.os': { name: 'plan9' } },
    unsupported('supported values: "linux", "windows"'),
  ),
  leftOut('spec.resourceClaims', 'names and sources', 'resource claims are not served'),
  leftOut('spec.imagePullSecrets', 'only a name', 'the schema has no other field'),
];

export const podSpec: Constraint[] = [
  ...containers,
  ...ports,
  ...environment,
  ...probes,
  ...resources,
  ...volumes,
  ...mounts,
  ...security,
  ...scheduling,
  ...rest,
];

/** A pod with another account is refused before (403), by admission. */
export const templateOnly: Constraint[] = [
  at('spec.serviceAccountName', 'a DNS subdomain', 'A_b', invalid()),
  ...labels('metadata.labels').map(below('labels')),
  ...annotations('metadata.annotations').map(below('annotations')),
];

/** Upstream reports the metadata of a template without `metadata` in the path. */
function below(field: string): (constraint: Constraint) => Constraint {
  return (each) => (each.kind !== 'checked' ? each : { ...each, cause: { ...each.cause, field } });
}
