/** The smallest valid object of each kind that applications use, by plural name. */
import type { KubeObject } from '../../shared/kinds/types.ts';

const labels = { app: 'a' };
const selector = { matchLabels: labels };
const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'registry.example/app:1' }] } };
const jobTemplate = { spec: { ...template.spec, restartPolicy: 'Never' } };
const rules = [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }];
const subjects = [{ kind: 'User', name: 'ada' }];
const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };

const matchConstraints = {
  resourceRules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
};

/** A request of CN=ada, O=dev, with a key of P-256. */
export const CERTIFICATE_REQUEST = `-----BEGIN CERTIFICATE REQUEST-----
MIHWMH4CAQAwHDEMMAoGA1UECgwDZGV2MQwwCgYDVQQDDANhZGEwWTATBgcqhkjO
PQIBBggqhkjOPQMBBwNCAASNAAD93NPr0pIqjcmgnMc6blHVwesKG0f6UScNCNCK
8IeGsnZ9Kmu2O8Wrs/rD37qEbpKq8VyN5zFkaVdbTGNtoAAwCgYIKoZIzj0EAwID
SAAwRQIgeizZkbrq9tJEz55WovriEiZL+VksG2wluuh+BLQ0r2kCIQD9GH0QRKcG
CXQfsMCrrCwYDy2kHJdXvKJlVz2swnIR7A==
-----END CERTIFICATE REQUEST-----
`;

/** Without apiVersion, kind and metadata. */
export const APPLICATION_OBJECTS: Readonly<Record<string, Omit<KubeObject, 'metadata'>>> = {
  certificatesigningrequests: {
    spec: {
      request: Buffer.from(CERTIFICATE_REQUEST).toString('base64'),
      signerName: 'example.com/signer',
      usages: ['client auth'],
    },
  },
  clusterrolebindings: { roleRef: { kind: 'ClusterRole', name: 'r' }, subjects },
  clusterroles: { rules },
  configmaps: { data: { key: 'value' } },
  controllerrevisions: { data: { spec: {} }, revision: 1 },
  cronjobs: { spec: { schedule: '*/5 * * * *', jobTemplate: { spec: { template: jobTemplate } } } },
  csidrivers: { spec: {} },
  csistoragecapacities: { storageClassName: 'fast' },
  deployments: { spec: { selector, template } },
  endpoints: { subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }] },
  endpointslices: { addressType: 'IPv4', endpoints: [{ addresses: ['10.0.0.1'] }], ports: [{ port: 80 }] },
  horizontalpodautoscalers: {
    spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' }, maxReplicas: 3 },
  },
  ingressclasses: { spec: { controller: 'example.com/controller' } },
  ingresses: { spec: { defaultBackend: { service: { name: 's', port: { number: 80 } } } } },
  jobs: { spec: { template: jobTemplate } },
  limitranges: { spec: { limits: [{ type: 'Container', max: { cpu: '1' } }] } },
  mutatingadmissionpolicies: {
    spec: {
      matchConstraints,
      mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: '[JSONPatch{op: "test", path: "/kind"}]' } }],
      reinvocationPolicy: 'Never',
    },
  },
  mutatingadmissionpolicybindings: { spec: { policyName: 'p' } },
  mutatingwebhookconfigurations: { webhooks: [] },
  networkpolicies: { spec: { podSelector: {} } },
  persistentvolumeclaims: { spec: claim },
  persistentvolumes: {
    spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, hostPath: { path: '/data' } },
  },
  podtemplates: { template },
  replicasets: { spec: { selector, template } },
  replicationcontrollers: { spec: { template } },
  resourcequotas: { spec: { hard: { pods: '2' } } },
  rolebindings: { roleRef: { kind: 'Role', name: 'r' }, subjects },
  roles: { rules },
  runtimeclasses: { handler: 'runsc' },
  secrets: { stringData: { key: 'value' } },
  serviceaccounts: {},
  services: { spec: { selector: labels, ports: [{ port: 80 }] } },
  statefulsets: { spec: { selector, template, serviceName: 's' } },
  storageclasses: { provisioner: 'example.com/provisioner' },
  validatingadmissionpolicies: { spec: { matchConstraints, validations: [{ expression: 'true' }] } },
  validatingadmissionpolicybindings: { spec: { policyName: 'p', validationActions: ['Deny'] } },
  validatingwebhookconfigurations: { webhooks: [] },
};
