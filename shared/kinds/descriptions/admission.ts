import type { Descriptions } from './descriptions.ts';

const MATCH = 'Selects the requests.';
const PARAMS = 'Kind of the objects that parameterize the policy.';
const FAILURE = 'Fail refuses a request if an evaluation fails, Ignore lets it pass.';
const CONDITIONS = 'Expressions that must be true for a request, or the policy is not for it.';
const VARIABLES = 'Expressions with names, which other expressions read as variables.name.';
const BINDING = {
  '': 'What a binding applies a policy to.',
  policyName: 'Name of the policy.',
  paramRef: 'The objects that parameterize the policy here.',
  matchResources: 'Narrows the requests that the policy selects.',
};
const NAME = 'Name of the variable.';
const EXPRESSION = 'Expression of the Common Expression Language.';

const WEBHOOK = {
  '': 'A server that is asked about requests.',
  name: 'Name, with at least three segments, unique in the configuration.',
  clientConfig: 'Where the server is.',
  rules: 'Operations and resources: one of them must match.',
  failurePolicy: 'Fail refuses a request if the server cannot be asked, Ignore lets it pass.',
  matchPolicy: 'Equivalent also selects requests in other versions of a resource, Exact only those that are named.',
  namespaceSelector: 'Labels of the namespace of the object.',
  objectSelector: 'Labels of the object, before or after the write.',
  sideEffects: 'None, or NoneOnDryRun: a dry run changes nothing.',
  timeoutSeconds: 'Time for one answer, 1 to 30 seconds.',
  admissionReviewVersions: 'Versions of AdmissionReview that the server reads; v1 must be one.',
  matchConditions: 'Expressions that must be true for a request, or the server is not asked.',
};

export const admission: Descriptions = {
  'admissionregistration/v1.ApplyConfiguration': {
    '': 'An expression for an object that is merged into the one of the request.',
    expression: EXPRESSION,
  },
  'admissionregistration/v1.AuditAnnotation': {
    '': 'A value that is recorded for a request.',
    key: 'Name of the value.',
    valueExpression: 'Expression of the value; null records nothing.',
  },
  'admissionregistration/v1.ExpressionWarning': {
    '': 'What a type check found in an expression.',
    fieldRef: 'Path of the expression.',
    warning: 'What was found.',
  },
  'admissionregistration/v1.JSONPatch': {
    '': 'An expression for a list of operations that change the object of the request.',
    expression: EXPRESSION,
  },
  'admissionregistration/v1.MatchCondition': {
    '': 'An expression that must be true for a request.',
    name: 'Name, unique in the policy.',
    expression: EXPRESSION,
  },
  'admissionregistration/v1.MatchResources': {
    '': MATCH,
    namespaceSelector: 'Labels of the namespace of the object.',
    objectSelector: 'Labels of the object, before or after the write.',
    resourceRules: 'Operations and resources: one of them must match.',
    excludeResourceRules: 'Operations and resources that are left out.',
    matchPolicy: 'Equivalent also selects requests in other versions of a resource, Exact only those that are named.',
  },
  'admissionregistration/v1.MutatingAdmissionPolicy': {
    '': 'MutatingAdmissionPolicy describes the definition of an admission mutation policy that mutates the object coming into admission chain.',
    spec: 'How objects are changed.',
  },
  'admissionregistration/v1.MutatingAdmissionPolicyBinding': {
    '': 'MutatingAdmissionPolicyBinding binds the MutatingAdmissionPolicy with parametrized resources.',
    spec: 'The policy and what it is applied to.',
  },
  'admissionregistration/v1.MutatingAdmissionPolicyBindingSpec': BINDING,
  'admissionregistration/v1.MutatingAdmissionPolicySpec': {
    '': 'How objects are changed.',
    paramKind: PARAMS,
    matchConstraints: MATCH,
    variables: VARIABLES,
    mutations: 'Changes, one after the other.',
    failurePolicy: FAILURE,
    matchConditions: CONDITIONS,
    reinvocationPolicy: 'IfNeeded runs the policy again if a later one changed the object, Never does not.',
  },
  'admissionregistration/v1.Mutation': {
    '': 'One change of an object.',
    patchType: 'ApplyConfiguration or JSONPatch.',
    applyConfiguration: 'What is merged into the object.',
    jsonPatch: 'Operations on the object.',
  },
  'admissionregistration/v1.MutatingWebhook': {
    ...WEBHOOK,
    reinvocationPolicy: 'IfNeeded asks the server again if a later one changed the object, Never does not.',
  },
  'admissionregistration/v1.MutatingWebhookConfiguration': {
    '': 'MutatingWebhookConfiguration describes the configuration of and admission webhook that accept or reject and may change the object.',
    webhooks: 'Servers that may change objects.',
  },
  'admissionregistration/v1.NamedRuleWithOperations': {
    '': 'Operations on resources.',
    resourceNames: 'Names of objects; empty: all.',
    operations: 'CREATE, UPDATE, DELETE, CONNECT or *.',
    apiGroups: 'API groups of the resources; "" is the core group, * all.',
    apiVersions: 'API versions of the resources; * all.',
    resources: 'Resources such as pods, pods/status, pods/* or *.',
    scope: 'Cluster, Namespaced or *.',
  },
  'admissionregistration/v1.ParamKind': {
    '': PARAMS,
    apiVersion: 'Group and version of the kind.',
    kind: 'The kind.',
  },
  'admissionregistration/v1.ParamRef': {
    '': 'Objects that parameterize a policy.',
    name: 'Name of the object.',
    namespace: 'Its namespace; empty: that of the request.',
    selector: 'Labels of the objects, instead of a name.',
    parameterNotFoundAction: 'Deny fails requests while there is no such object, Allow does not evaluate the policy.',
  },
  'admissionregistration/v1.RuleWithOperations': {
    '': 'Operations on resources.',
    operations: 'CREATE, UPDATE, DELETE, CONNECT or *.',
    apiGroups: 'API groups of the resources; "" is the core group, * all.',
    apiVersions: 'API versions of the resources; * all.',
    resources: 'Resources such as pods, pods/status, pods/* or *.',
    scope: 'Cluster, Namespaced or *.',
  },
  'admissionregistration/v1.ServiceReference': {
    '': 'A Service.',
    namespace: 'Namespace of the Service.',
    name: 'Name of the Service.',
    path: 'Path of the requests.',
    port: 'Port of the Service; 443 if absent.',
  },
  'admissionregistration/v1.TypeChecking': {
    '': 'Result of a type check of the expressions.',
    expressionWarnings: 'What was found, one per expression.',
  },
  'admissionregistration/v1.ValidatingAdmissionPolicy': {
    '': 'ValidatingAdmissionPolicy describes the definition of an admission validation policy that accepts or rejects an object without changing it.',
    spec: 'What must hold.',
    status: 'Observed state of the policy.',
  },
  'admissionregistration/v1.ValidatingAdmissionPolicyBinding': {
    '': 'ValidatingAdmissionPolicyBinding binds the ValidatingAdmissionPolicy with paramerized resources.',
    spec: 'The policy, what it is applied to, and what a failure does.',
  },
  'admissionregistration/v1.ValidatingAdmissionPolicyBindingSpec': {
    ...BINDING,
    validationActions: 'What a failed validation does: Deny, Warn or Audit.',
  },
  'admissionregistration/v1.ValidatingAdmissionPolicySpec': {
    '': 'What must hold.',
    paramKind: PARAMS,
    matchConstraints: MATCH,
    validations: 'Expressions that must be true.',
    failurePolicy: FAILURE,
    auditAnnotations: 'Values that are recorded for a request.',
    matchConditions: CONDITIONS,
    variables: VARIABLES,
  },
  'admissionregistration/v1.ValidatingAdmissionPolicyStatus': {
    '': 'Observed state of the policy.',
    typeChecking: 'Result of a type check of the expressions.',
    conditions: 'Conditions of the policy, one per type.',
  },
  'admissionregistration/v1.ValidatingWebhook': WEBHOOK,
  'admissionregistration/v1.ValidatingWebhookConfiguration': {
    '': 'ValidatingWebhookConfiguration describes the configuration of and admission webhook that accept or reject and object without changing it.',
    webhooks: 'Servers that may refuse requests.',
  },
  'admissionregistration/v1.Validation': {
    '': 'An expression that must be true.',
    expression: EXPRESSION,
    message: 'What a refusal says.',
    reason: 'Reason of a refusal: Unauthorized, Forbidden, Invalid or RequestEntityTooLarge.',
    messageExpression: 'Expression of what a refusal says.',
  },
  'admissionregistration/v1.WebhookClientConfig': {
    '': 'Where a server is: a URL or a Service.',
    url: 'https://HOST[:PORT]/PATH of the server.',
    service: 'The Service of the server.',
    caBundle: 'Certificates in PEM that the certificate of the server is verified with; absent: those of the system.',
  },
  'admissionregistration/v1.Variable': { '': 'An expression with a name.', name: NAME, expression: EXPRESSION },
};
