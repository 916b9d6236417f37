// Written by `npm run kinds` from the sources of k8s.io/api and k8s.io/apimachinery.
import { LEASE_TABLE } from './lease-table.ts';

/** Types of the kinds that are served. kubernetes/type-table.ts describes the form. */
export const TYPE_TABLE = `${LEASE_TABLE}
admissionregistration/v1.ApplyConfiguration: 1 expression string
admissionregistration/v1.AuditAnnotation: 1 key+! string, 2 valueExpression+! string
admissionregistration/v1.ExpressionWarning: 2 fieldRef+! string, 3 warning+! string
admissionregistration/v1.FailurePolicyType: string Fail|Ignore
admissionregistration/v1.JSONPatch: 1 expression string
admissionregistration/v1.MatchCondition: 1 name+! string, 2 expression+! string
admissionregistration/v1.MatchPolicyType: string Equivalent|Exact
admissionregistration/v1.MatchResources: atomic, 1 namespaceSelector? meta/v1.LabelSelector,
 2 objectSelector? meta/v1.LabelSelector, 3 resourceRules *NamedRuleWithOperations,
 4 excludeResourceRules *NamedRuleWithOperations, 7 matchPolicy? $MatchPolicyType
admissionregistration/v1.MutatingAdmissionPolicy: kind admissionregistration.k8s.io, 1 metadata+ meta/v1.ObjectMeta,
 2 spec+ MutatingAdmissionPolicySpec
admissionregistration/v1.MutatingAdmissionPolicyBinding: kind admissionregistration.k8s.io,
 1 metadata+ meta/v1.ObjectMeta, 2 spec+ MutatingAdmissionPolicyBindingSpec
admissionregistration/v1.MutatingAdmissionPolicyBindingSpec: 1 policyName string, 2 paramRef? ParamRef,
 3 matchResources? MatchResources
admissionregistration/v1.MutatingAdmissionPolicySpec: 1 paramKind? ParamKind, 2 matchConstraints? MatchResources,
 3 variables *Variable, 4 mutations *Mutation, 5 failurePolicy? $FailurePolicyType,
 6 matchConditions *MatchCondition map(name) merge(name), 7 reinvocationPolicy $ReinvocationPolicyType
admissionregistration/v1.MutatingWebhook: 1 name+! string, 2 clientConfig+! WebhookClientConfig,
 3 rules *RuleWithOperations, 4 failurePolicy? $FailurePolicyType, 9 matchPolicy? $MatchPolicyType,
 5 namespaceSelector? meta/v1.LabelSelector, 11 objectSelector? meta/v1.LabelSelector, 6 sideEffects?! $SideEffectClass,
 7 timeoutSeconds? int32, 8 admissionReviewVersions+! *string, 10 reinvocationPolicy? $ReinvocationPolicyType,
 12 matchConditions *MatchCondition map(name) merge(name)
admissionregistration/v1.MutatingWebhookConfiguration: kind admissionregistration.k8s.io,
 1 metadata+ meta/v1.ObjectMeta, 2 webhooks *MutatingWebhook map(name) merge(name)
admissionregistration/v1.Mutation: 2 patchType+! $PatchType, 3 applyConfiguration? ApplyConfiguration,
 4 jsonPatch? JSONPatch
admissionregistration/v1.NamedRuleWithOperations: atomic, 1 resourceNames *string, 2 = RuleWithOperations
admissionregistration/v1.OperationType: string *|CONNECT|CREATE|DELETE|UPDATE
admissionregistration/v1.ParamKind: atomic, 1 apiVersion string, 2 kind string
admissionregistration/v1.ParamRef: atomic, 1 name string, 2 namespace string, 3 selector? meta/v1.LabelSelector,
 4 parameterNotFoundAction? $ParameterNotFoundActionType
admissionregistration/v1.PatchType: string ApplyConfiguration|JSONPatch
admissionregistration/v1.ReinvocationPolicyType: string IfNeeded|Never
admissionregistration/v1.Rule: 1 apiGroups *string, 2 apiVersions *string, 3 resources *string, 4 scope? $ScopeType
admissionregistration/v1.RuleWithOperations: 1 operations *$OperationType, 2 = Rule
admissionregistration/v1.ScopeType: string *|Cluster|Namespaced
admissionregistration/v1.ServiceReference: 1 namespace+! string, 2 name+! string, 3 path? string, 4 port? int32
admissionregistration/v1.SideEffectClass: string None|NoneOnDryRun|Some|Unknown
admissionregistration/v1.TypeChecking: 1 expressionWarnings *ExpressionWarning
admissionregistration/v1.ValidatingAdmissionPolicy: kind admissionregistration.k8s.io, 1 metadata+ meta/v1.ObjectMeta,
 2 spec+ ValidatingAdmissionPolicySpec, 3 status+ ValidatingAdmissionPolicyStatus
admissionregistration/v1.ValidatingAdmissionPolicyBinding: kind admissionregistration.k8s.io,
 1 metadata+ meta/v1.ObjectMeta, 2 spec+! ValidatingAdmissionPolicyBindingSpec
admissionregistration/v1.ValidatingAdmissionPolicyBindingSpec: 1 policyName! string, 2 paramRef? ParamRef,
 3 matchResources? MatchResources, 4 validationActions! *$ValidationAction set
admissionregistration/v1.ValidatingAdmissionPolicySpec: 1 paramKind? ParamKind, 2 matchConstraints? MatchResources,
 3 validations *Validation, 4 failurePolicy? $FailurePolicyType, 5 auditAnnotations *AuditAnnotation,
 6 matchConditions *MatchCondition map(name) merge(name), 7 variables *Variable map(name) merge(name)
admissionregistration/v1.ValidatingAdmissionPolicyStatus: 1 observedGeneration int64, 2 typeChecking? TypeChecking,
 3 conditions *meta/v1.Condition map(type)
admissionregistration/v1.ValidatingWebhook: 1 name+! string, 2 clientConfig+! WebhookClientConfig,
 3 rules *RuleWithOperations, 4 failurePolicy? $FailurePolicyType, 9 matchPolicy? $MatchPolicyType,
 5 namespaceSelector? meta/v1.LabelSelector, 10 objectSelector? meta/v1.LabelSelector, 6 sideEffects?! $SideEffectClass,
 7 timeoutSeconds? int32, 8 admissionReviewVersions+! *string, 11 matchConditions *MatchCondition map(name) merge(name)
admissionregistration/v1.ValidatingWebhookConfiguration: kind admissionregistration.k8s.io,
 1 metadata+ meta/v1.ObjectMeta, 2 webhooks *ValidatingWebhook map(name) merge(name)
admissionregistration/v1.Validation: 1 expression+! string, 2 message string, 3 reason? $meta/v1.StatusReason,
 4 messageExpression string
admissionregistration/v1.ValidationAction: string Audit|Deny|Warn
admissionregistration/v1.Variable: atomic, 1 name+! string, 2 expression+! string
admissionregistration/v1.WebhookClientConfig: 3 url? string, 1 service? ServiceReference, 2 caBundle bytes
apps/v1.ControllerRevision: kind apps, 1 metadata+ meta/v1.ObjectMeta, 2 data? json, 3 revision+! int64
apps/v1.DaemonSet: kind apps, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ DaemonSetSpec, 3 status+ DaemonSetStatus
apps/v1.DaemonSetCondition: 1 type+! $DaemonSetConditionType, 2 status+! $core/v1.ConditionStatus,
 3 lastTransitionTime+ time, 4 reason string, 5 message string
apps/v1.DaemonSetSpec: 1 selector?! meta/v1.LabelSelector, 2 template+! core/v1.PodTemplateSpec,
 3 updateStrategy+ DaemonSetUpdateStrategy, 4 minReadySeconds int32, 6 revisionHistoryLimit? int32
apps/v1.DaemonSetStatus: 1 currentNumberScheduled+! int32, 2 numberMisscheduled+! int32,
 3 desiredNumberScheduled+! int32, 4 numberReady+! int32, 5 observedGeneration int64, 6 updatedNumberScheduled int32,
 7 numberAvailable int32, 8 numberUnavailable int32, 9 collisionCount? int32,
 10 conditions *DaemonSetCondition map(type) merge(type)
apps/v1.DaemonSetUpdateStrategy: 1 type $DaemonSetUpdateStrategyType, 2 rollingUpdate? RollingUpdateDaemonSet
apps/v1.DaemonSetUpdateStrategyType: string OnDelete|RollingUpdate
apps/v1.Deployment: kind apps, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ DeploymentSpec, 3 status+ DeploymentStatus
apps/v1.DeploymentCondition: 1 type+! $DeploymentConditionType, 2 status+! $core/v1.ConditionStatus,
 6 lastUpdateTime+ time, 7 lastTransitionTime+ time, 4 reason string, 5 message string
apps/v1.DeploymentSpec: 1 replicas? int32, 2 selector?! meta/v1.LabelSelector, 3 template+! core/v1.PodTemplateSpec,
 4 strategy+ DeploymentStrategy patch(retainKeys), 5 minReadySeconds int32, 6 revisionHistoryLimit? int32,
 7 paused bool, 9 progressDeadlineSeconds? int32
apps/v1.DeploymentStatus: 1 observedGeneration int64, 2 replicas int32, 3 updatedReplicas int32, 7 readyReplicas int32,
 4 availableReplicas int32, 5 unavailableReplicas int32, 9 terminatingReplicas? int32,
 6 conditions *DeploymentCondition map(type) merge(type), 8 collisionCount? int32
apps/v1.DeploymentStrategy: 1 type $DeploymentStrategyType, 2 rollingUpdate? RollingUpdateDeployment
apps/v1.DeploymentStrategyType: string Recreate|RollingUpdate
apps/v1.PodManagementPolicyType: string OrderedReady|Parallel
apps/v1.ReplicaSet: kind apps, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ ReplicaSetSpec, 3 status+ ReplicaSetStatus
apps/v1.ReplicaSetCondition: 1 type+! $ReplicaSetConditionType, 2 status+! $core/v1.ConditionStatus,
 3 lastTransitionTime+ time, 4 reason string, 5 message string
apps/v1.ReplicaSetSpec: 1 replicas? int32, 4 minReadySeconds int32, 2 selector?! meta/v1.LabelSelector,
 3 template+ core/v1.PodTemplateSpec
apps/v1.ReplicaSetStatus: 1 replicas+! int32, 2 fullyLabeledReplicas int32, 4 readyReplicas int32,
 5 availableReplicas int32, 7 terminatingReplicas? int32, 3 observedGeneration int64,
 6 conditions *ReplicaSetCondition map(type) merge(type)
apps/v1.RollingUpdateDaemonSet: 1 maxUnavailable? intOrString, 2 maxSurge? intOrString
apps/v1.RollingUpdateDeployment: 1 maxUnavailable? intOrString, 2 maxSurge? intOrString
apps/v1.RollingUpdateStatefulSetStrategy: 1 partition? int32, 2 maxUnavailable? intOrString
apps/v1.StatefulSet: kind apps, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ StatefulSetSpec, 3 status+ StatefulSetStatus
apps/v1.StatefulSetCondition: 1 type+! $StatefulSetConditionType, 2 status+! $core/v1.ConditionStatus,
 3 lastTransitionTime+ time, 4 reason string, 5 message string
apps/v1.StatefulSetOrdinals: 1 start+ int32
apps/v1.StatefulSetPersistentVolumeClaimRetentionPolicy: 1 whenDeleted $PersistentVolumeClaimRetentionPolicyType,
 2 whenScaled $PersistentVolumeClaimRetentionPolicyType
apps/v1.StatefulSetSpec: 1 replicas? int32, 2 selector?! meta/v1.LabelSelector, 3 template+! core/v1.PodTemplateSpec,
 4 volumeClaimTemplates *core/v1.PersistentVolumeClaim, 5 serviceName+ string,
 6 podManagementPolicy $PodManagementPolicyType, 7 updateStrategy+ StatefulSetUpdateStrategy,
 8 revisionHistoryLimit? int32, 9 minReadySeconds int32,
 10 persistentVolumeClaimRetentionPolicy? StatefulSetPersistentVolumeClaimRetentionPolicy,
 11 ordinals? StatefulSetOrdinals
apps/v1.StatefulSetStatus: 1 observedGeneration int64, 2 replicas+! int32, 3 readyReplicas int32,
 4 currentReplicas int32, 5 updatedReplicas int32, 6 currentRevision string, 7 updateRevision string,
 9 collisionCount? int32, 10 conditions *StatefulSetCondition map(type) merge(type), 11 availableReplicas+ int32
apps/v1.StatefulSetUpdateStrategy: 1 type $StatefulSetUpdateStrategyType,
 2 rollingUpdate? RollingUpdateStatefulSetStrategy
apps/v1.StatefulSetUpdateStrategyType: string OnDelete|RollingUpdate
authentication/v1.BoundObjectReference: 1 kind string, 2 apiVersion string, 3 name string, 4 uid $types.UID
authentication/v1.SelfSubjectReview: kind authentication.k8s.io, 1 metadata+ meta/v1.ObjectMeta,
 2 status+ SelfSubjectReviewStatus
authentication/v1.SelfSubjectReviewStatus: 1 userInfo+ UserInfo
authentication/v1.TokenRequest: kind authentication.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ TokenRequestSpec,
 3 status+ TokenRequestStatus
authentication/v1.TokenRequestSpec: 1 audiences+ *string, 4 expirationSeconds? int64,
 3 boundObjectRef? BoundObjectReference
authentication/v1.TokenRequestStatus: 1 token+ string, 2 expirationTimestamp+ time
authentication/v1.TokenReview: kind authentication.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 spec+! TokenReviewSpec,
 3 status+ TokenReviewStatus
authentication/v1.TokenReviewSpec: 1 token! string, 2 audiences *string
authentication/v1.TokenReviewStatus: 1 authenticated bool, 2 user+ UserInfo, 4 audiences *string, 3 error string
authentication/v1.UserInfo: 1 username string, 2 uid string, 3 groups *string, 4 extra %strings
authorization/v1.FieldSelectorAttributes: 1 rawSelector string, 2 requirements *meta/v1.FieldSelectorRequirement
authorization/v1.LabelSelectorAttributes: 1 rawSelector string, 2 requirements *meta/v1.LabelSelectorRequirement
authorization/v1.LocalSubjectAccessReview: kind authorization.k8s.io, 1 metadata+ meta/v1.ObjectMeta,
 2 spec+! SubjectAccessReviewSpec, 3 status+ SubjectAccessReviewStatus
authorization/v1.NonResourceAttributes: 1 path string, 2 verb string
authorization/v1.NonResourceRule: 1 verbs+! *string, 2 nonResourceURLs *string
authorization/v1.ResourceAttributes: 1 namespace string, 2 verb string, 3 group string, 4 version string,
 5 resource string, 6 subresource string, 7 name string, 8 fieldSelector? FieldSelectorAttributes,
 9 labelSelector? LabelSelectorAttributes
authorization/v1.ResourceRule: 1 verbs+! *string, 2 apiGroups *string, 3 resources *string, 4 resourceNames *string
authorization/v1.SelfSubjectAccessReview: kind authorization.k8s.io, 1 metadata+ meta/v1.ObjectMeta,
 2 spec+! SelfSubjectAccessReviewSpec, 3 status+ SubjectAccessReviewStatus
authorization/v1.SelfSubjectAccessReviewSpec: 1 resourceAttributes? ResourceAttributes,
 2 nonResourceAttributes? NonResourceAttributes
authorization/v1.SelfSubjectRulesReview: kind authorization.k8s.io, 1 metadata+ meta/v1.ObjectMeta,
 2 spec+! SelfSubjectRulesReviewSpec, 3 status+ SubjectRulesReviewStatus
authorization/v1.SelfSubjectRulesReviewSpec: 1 namespace string
authorization/v1.SubjectAccessReview: kind authorization.k8s.io, 1 metadata+ meta/v1.ObjectMeta,
 2 spec+! SubjectAccessReviewSpec, 3 status+ SubjectAccessReviewStatus
authorization/v1.SubjectAccessReviewSpec: 1 resourceAttributes? ResourceAttributes,
 2 nonResourceAttributes? NonResourceAttributes, 3 user string, 4 groups *string, 5 extra %strings, 6 uid string
authorization/v1.SubjectAccessReviewStatus: 1 allowed+! bool, 4 denied bool, 2 reason string, 3 evaluationError string
authorization/v1.SubjectRulesReviewStatus: 1 resourceRules+! *ResourceRule, 2 nonResourceRules+! *NonResourceRule,
 3 incomplete+! bool, 4 evaluationError string
autoscaling/v1.CrossVersionObjectReference: atomic, 1 kind+! string, 2 name+! string, 3 apiVersion string
autoscaling/v1.HorizontalPodAutoscaler: kind autoscaling, 1 metadata+ meta/v1.ObjectMeta,
 2 spec+! HorizontalPodAutoscalerSpec, 3 status+ HorizontalPodAutoscalerStatus
autoscaling/v1.HorizontalPodAutoscalerSpec: 1 scaleTargetRef+! CrossVersionObjectReference, 2 minReplicas? int32,
 3 maxReplicas+! int32, 4 targetCPUUtilizationPercentage? int32
autoscaling/v1.HorizontalPodAutoscalerStatus: 1 observedGeneration? int64, 2 lastScaleTime? time,
 3 currentReplicas+! int32, 4 desiredReplicas+! int32, 5 currentCPUUtilizationPercentage? int32
autoscaling/v1.Scale: kind autoscaling, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ ScaleSpec, 3 status+ ScaleStatus
autoscaling/v1.ScaleSpec: 1 replicas int32
autoscaling/v1.ScaleStatus: 1 replicas+! int32, 2 selector string
autoscaling/v2.ContainerResourceMetricSource: 1 name+! $core/v1.ResourceName, 2 target+! MetricTarget,
 3 container+! string
autoscaling/v2.ContainerResourceMetricStatus: 1 name+! $core/v1.ResourceName, 2 current+! MetricValueStatus,
 3 container+! string
autoscaling/v2.CrossVersionObjectReference: 1 kind+! string, 2 name+! string, 3 apiVersion string
autoscaling/v2.ExternalMetricSource: 1 metric+! MetricIdentifier, 2 target+! MetricTarget
autoscaling/v2.ExternalMetricStatus: 1 metric+! MetricIdentifier, 2 current+! MetricValueStatus
autoscaling/v2.HPAScalingPolicy: 1 type+! $HPAScalingPolicyType, 2 value+! int32, 3 periodSeconds+! int32
autoscaling/v2.HPAScalingRules: 3 stabilizationWindowSeconds? int32, 1 selectPolicy? $ScalingPolicySelect,
 2 policies *HPAScalingPolicy, 4 tolerance? quantity
autoscaling/v2.HorizontalPodAutoscaler: kind autoscaling, 1 metadata+ meta/v1.ObjectMeta,
 2 spec+! HorizontalPodAutoscalerSpec, 3 status+ HorizontalPodAutoscalerStatus
autoscaling/v2.HorizontalPodAutoscalerBehavior: 1 scaleUp? HPAScalingRules, 2 scaleDown? HPAScalingRules
autoscaling/v2.HorizontalPodAutoscalerCondition: 1 type+! $HorizontalPodAutoscalerConditionType,
 2 status+! $core/v1.ConditionStatus, 3 lastTransitionTime+ time, 4 reason string, 5 message string
autoscaling/v2.HorizontalPodAutoscalerSpec: 1 scaleTargetRef+! CrossVersionObjectReference, 2 minReplicas? int32,
 3 maxReplicas+! int32, 4 metrics *MetricSpec, 5 behavior? HorizontalPodAutoscalerBehavior
autoscaling/v2.HorizontalPodAutoscalerStatus: 1 observedGeneration? int64, 2 lastScaleTime? time,
 3 currentReplicas int32, 4 desiredReplicas+! int32, 5 currentMetrics+ *MetricStatus,
 6 conditions *HorizontalPodAutoscalerCondition map(type) merge(type)
autoscaling/v2.MetricIdentifier: 1 name+! string, 2 selector? meta/v1.LabelSelector
autoscaling/v2.MetricSpec: 1 type+! $MetricSourceType, 2 object? ObjectMetricSource, 3 pods? PodsMetricSource,
 4 resource? ResourceMetricSource, 7 containerResource? ContainerResourceMetricSource, 5 external? ExternalMetricSource
autoscaling/v2.MetricStatus: 1 type+! $MetricSourceType, 2 object? ObjectMetricStatus, 3 pods? PodsMetricStatus,
 4 resource? ResourceMetricStatus, 7 containerResource? ContainerResourceMetricStatus, 5 external? ExternalMetricStatus
autoscaling/v2.MetricTarget: 1 type+! $MetricTargetType, 2 value? quantity, 3 averageValue? quantity,
 4 averageUtilization? int32
autoscaling/v2.MetricValueStatus: 1 value? quantity, 2 averageValue? quantity, 3 averageUtilization? int32
autoscaling/v2.ObjectMetricSource: 1 describedObject+! CrossVersionObjectReference, 2 target+! MetricTarget,
 3 metric+! MetricIdentifier
autoscaling/v2.ObjectMetricStatus: 1 metric+! MetricIdentifier, 2 current+! MetricValueStatus,
 3 describedObject+! CrossVersionObjectReference
autoscaling/v2.PodsMetricSource: 1 metric+! MetricIdentifier, 2 target+! MetricTarget
autoscaling/v2.PodsMetricStatus: 1 metric+! MetricIdentifier, 2 current+! MetricValueStatus
autoscaling/v2.ResourceMetricSource: 1 name+! $core/v1.ResourceName, 2 target+! MetricTarget
autoscaling/v2.ResourceMetricStatus: 1 name+! $core/v1.ResourceName, 2 current+! MetricValueStatus
batch/v1.CompletionMode: string Indexed|NonIndexed
batch/v1.ConcurrencyPolicy: string Allow|Forbid|Replace
batch/v1.CronJob: kind batch, 1 metadata+ meta/v1.ObjectMeta, 2 spec+! CronJobSpec, 3 status+ CronJobStatus
batch/v1.CronJobSpec: 1 schedule+! string, 8 timeZone? string, 2 startingDeadlineSeconds? int64,
 3 concurrencyPolicy $ConcurrencyPolicy, 4 suspend? bool, 5 jobTemplate+! JobTemplateSpec,
 6 successfulJobsHistoryLimit? int32, 7 failedJobsHistoryLimit? int32
batch/v1.CronJobStatus: 1 active *core/v1.ObjectReference, 4 lastScheduleTime? time, 5 lastSuccessfulTime? time
batch/v1.Job: kind batch, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ JobSpec, 3 status+ JobStatus
batch/v1.JobCondition: 1 type+! $JobConditionType, 2 status+! $core/v1.ConditionStatus, 3 lastProbeTime+ time,
 4 lastTransitionTime+ time, 5 reason string, 6 message string
batch/v1.JobSpec: 1 parallelism? int32, 2 completions? int32, 3 activeDeadlineSeconds? int64,
 11 podFailurePolicy? PodFailurePolicy, 16 successPolicy? SuccessPolicy, 7 backoffLimit? int32,
 12 backoffLimitPerIndex? int32, 13 maxFailedIndexes? int32, 4 selector? meta/v1.LabelSelector, 5 manualSelector? bool,
 6 template+! core/v1.PodTemplateSpec, 8 ttlSecondsAfterFinished? int32, 9 completionMode? $CompletionMode,
 10 suspend? bool, 14 podReplacementPolicy? $PodReplacementPolicy, 15 managedBy? string
batch/v1.JobStatus: 1 conditions *JobCondition merge(type), 2 startTime? time, 3 completionTime? time, 4 active int32,
 5 succeeded int32, 6 failed int32, 11 terminating? int32, 7 completedIndexes string, 10 failedIndexes? string,
 8 uncountedTerminatedPods? UncountedTerminatedPods, 9 ready? int32
batch/v1.JobTemplateSpec: 1 metadata+ meta/v1.ObjectMeta, 2 spec+ JobSpec
batch/v1.PodFailurePolicy: 1 rules+! *PodFailurePolicyRule
batch/v1.PodFailurePolicyAction: string Count|FailIndex|FailJob|Ignore
batch/v1.PodFailurePolicyOnExitCodesOperator: string In|NotIn
batch/v1.PodFailurePolicyOnExitCodesRequirement: 1 containerName? string,
 2 operator+! $PodFailurePolicyOnExitCodesOperator, 3 values+! *int32 set
batch/v1.PodFailurePolicyOnPodConditionsPattern: 1 type+! $core/v1.PodConditionType, 2 status+ $core/v1.ConditionStatus
batch/v1.PodFailurePolicyRule: 1 action+! $PodFailurePolicyAction,
 2 onExitCodes? PodFailurePolicyOnExitCodesRequirement, 3 onPodConditions *PodFailurePolicyOnPodConditionsPattern
batch/v1.PodReplacementPolicy: string Failed|TerminatingOrFailed
batch/v1.SuccessPolicy: 1 rules+! *SuccessPolicyRule
batch/v1.SuccessPolicyRule: 1 succeededIndexes? string, 2 succeededCount? int32
batch/v1.UncountedTerminatedPods: 1 succeeded *$types.UID set, 2 failed *$types.UID set
certificates/v1.CertificateSigningRequest: kind certificates.k8s.io, 1 metadata+ meta/v1.ObjectMeta,
 2 spec+! CertificateSigningRequestSpec, 3 status+ CertificateSigningRequestStatus
certificates/v1.CertificateSigningRequestCondition: 1 type+! $RequestConditionType, 6 status+! $core/v1.ConditionStatus,
 2 reason string, 3 message string, 4 lastUpdateTime+ time, 5 lastTransitionTime+ time
certificates/v1.CertificateSigningRequestSpec: 1 request+! bytes, 7 signerName+! string, 8 expirationSeconds? int32,
 5 usages *$KeyUsage, 2 username string, 3 uid string, 4 groups *string, 6 extra %strings
certificates/v1.CertificateSigningRequestStatus: 1 conditions *CertificateSigningRequestCondition map(type),
 2 certificate bytes
certificates/v1.KeyUsage: string any|cert sign|client auth|code signing|content commitment|crl sign|data encipherment|
 decipher only|digital signature|email protection|encipher only|ipsec end system|ipsec tunnel|ipsec user|key agreement|
 key encipherment|microsoft sgc|netscape sgc|ocsp signing|s/mime|server auth|signing|timestamping
core/v1.AWSElasticBlockStoreVolumeSource: 1 volumeID+! string, 2 fsType string, 3 partition int32, 4 readOnly bool
core/v1.Affinity: 1 nodeAffinity? NodeAffinity, 2 podAffinity? PodAffinity, 3 podAntiAffinity? PodAntiAffinity
core/v1.AppArmorProfile: 1 type+! $AppArmorProfileType, 2 localhostProfile? string
core/v1.AppArmorProfileType: string Localhost|RuntimeDefault|Unconfined
core/v1.AttachedVolume: 1 name+! $UniqueVolumeName, 2 devicePath+! string
core/v1.AzureDataDiskCachingMode: string None|ReadOnly|ReadWrite
core/v1.AzureDataDiskKind: string Dedicated|Managed|Shared
core/v1.AzureDiskVolumeSource: 1 diskName+! string, 2 diskURI+! string, 3 cachingMode? $AzureDataDiskCachingMode,
 4 fsType? string default(ext4), 5 readOnly? bool, 6 kind? $AzureDataDiskKind
core/v1.AzureFilePersistentVolumeSource: 1 secretName+! string, 2 shareName+! string, 3 readOnly bool,
 4 secretNamespace? string
core/v1.AzureFileVolumeSource: 1 secretName+! string, 2 shareName+! string, 3 readOnly bool
core/v1.Binding: kind, 1 metadata+ meta/v1.ObjectMeta, 2 target+! ObjectReference
core/v1.CSIPersistentVolumeSource: 1 driver+! string, 2 volumeHandle+! string, 3 readOnly bool, 4 fsType string,
 5 volumeAttributes %string, 6 controllerPublishSecretRef? SecretReference, 7 nodeStageSecretRef? SecretReference,
 8 nodePublishSecretRef? SecretReference, 9 controllerExpandSecretRef? SecretReference,
 10 nodeExpandSecretRef? SecretReference
core/v1.CSIVolumeSource: 1 driver+! string, 2 readOnly? bool, 3 fsType? string, 4 volumeAttributes %string,
 5 nodePublishSecretRef? LocalObjectReference
core/v1.Capabilities: 1 add *$Capability, 2 drop *$Capability
core/v1.CephFSPersistentVolumeSource: 1 monitors+! *string, 2 path string, 3 user string, 4 secretFile string,
 5 secretRef? SecretReference, 6 readOnly bool
core/v1.CephFSVolumeSource: 1 monitors+! *string, 2 path string, 3 user string, 4 secretFile string,
 5 secretRef? LocalObjectReference, 6 readOnly bool
core/v1.CinderPersistentVolumeSource: 1 volumeID+! string, 2 fsType string, 3 readOnly bool,
 4 secretRef? SecretReference
core/v1.CinderVolumeSource: 1 volumeID+! string, 2 fsType string, 3 readOnly bool, 4 secretRef? LocalObjectReference
core/v1.ClaimResourceStatus: string ControllerResizeInProgress|ControllerResizeInfeasible|NodeResizeInProgress|
 NodeResizeInfeasible|NodeResizePending
core/v1.ClientIPConfig: 1 timeoutSeconds? int32
core/v1.ClusterTrustBundleProjection: 1 name? string, 2 signerName? string, 3 labelSelector? meta/v1.LabelSelector,
 5 optional? bool, 4 path+! string
core/v1.ConfigMap: kind, 1 metadata+ meta/v1.ObjectMeta, 4 immutable? bool, 2 data %string, 3 binaryData %bytes
core/v1.ConfigMapEnvSource: 1 = LocalObjectReference, 2 optional? bool
core/v1.ConfigMapKeySelector: atomic, 1 = LocalObjectReference, 2 key+! string, 3 optional? bool
core/v1.ConfigMapNodeConfigSource: 1 namespace+! string, 2 name+! string, 3 uid $types.UID, 4 resourceVersion string,
 5 kubeletConfigKey+! string
core/v1.ConfigMapProjection: 1 = LocalObjectReference, 2 items *KeyToPath, 4 optional? bool
core/v1.ConfigMapVolumeSource: 1 = LocalObjectReference, 2 items *KeyToPath, 3 defaultMode? int32, 4 optional? bool
core/v1.Container: 1 name+! string, 2 image string, 3 command *string, 4 args *string, 5 workingDir string,
 6 ports *ContainerPort map(containerPort/protocol) merge(containerPort), 19 envFrom *EnvFromSource,
 7 env *EnvVar map(name) merge(name), 8 resources+ ResourceRequirements, 23 resizePolicy *ContainerResizePolicy,
 24 restartPolicy? $ContainerRestartPolicy, 25 restartPolicyRules *ContainerRestartRule,
 9 volumeMounts *VolumeMount map(mountPath) merge(mountPath),
 21 volumeDevices *VolumeDevice map(devicePath) merge(devicePath), 10 livenessProbe? Probe, 11 readinessProbe? Probe,
 22 startupProbe? Probe, 12 lifecycle? Lifecycle, 13 terminationMessagePath string,
 20 terminationMessagePolicy $TerminationMessagePolicy, 14 imagePullPolicy $PullPolicy,
 15 securityContext? SecurityContext, 16 stdin bool, 17 stdinOnce bool, 18 tty bool
core/v1.ContainerExtendedResourceRequest: 1 containerName+! string, 2 resourceName+! string, 3 requestName+! string
core/v1.ContainerImage: 1 names+ *string, 2 sizeBytes int64
core/v1.ContainerPort: 1 name string, 2 hostPort int32, 3 containerPort+! int32, 4 protocol $Protocol default(TCP),
 5 hostIP string
core/v1.ContainerResizePolicy: 1 resourceName+! $ResourceName, 2 restartPolicy+! $ResourceResizeRestartPolicy
core/v1.ContainerRestartRule: 1 action! $ContainerRestartRuleAction, 2 exitCodes? ContainerRestartRuleOnExitCodes
core/v1.ContainerRestartRuleOnExitCodes: 1 operator! $ContainerRestartRuleOnExitCodesOperator, 2 values *int32 set
core/v1.ContainerState: 1 waiting? ContainerStateWaiting, 2 running? ContainerStateRunning,
 3 terminated? ContainerStateTerminated
core/v1.ContainerStateRunning: 1 startedAt+ time
core/v1.ContainerStateTerminated: 1 exitCode+! int32, 2 signal int32, 3 reason string, 4 message string,
 5 startedAt+ time, 6 finishedAt+ time, 7 containerID string
core/v1.ContainerStateWaiting: 1 reason string, 2 message string
core/v1.ContainerStatus: 1 name+! string, 2 state+ ContainerState, 3 lastState+ ContainerState, 4 ready+! bool,
 5 restartCount+! int32, 6 image+! string, 7 imageID+! string, 8 containerID string, 9 started? bool,
 10 allocatedResources %quantity, 11 resources? ResourceRequirements,
 12 volumeMounts *VolumeMountStatus map(mountPath) merge(mountPath), 13 user? ContainerUser,
 14 allocatedResourcesStatus *ResourceStatus map(name) merge(name), 15 stopSignal? $Signal
core/v1.ContainerUser: 1 linux? LinuxContainerUser
core/v1.DNSPolicy: string ClusterFirst|ClusterFirstWithHostNet|Default|None
core/v1.DaemonEndpoint: 1 Port+! int32
core/v1.DownwardAPIProjection: 1 items *DownwardAPIVolumeFile
core/v1.DownwardAPIVolumeFile: 1 path+! string, 2 fieldRef? ObjectFieldSelector,
 3 resourceFieldRef? ResourceFieldSelector, 4 mode? int32
core/v1.DownwardAPIVolumeSource: 1 items *DownwardAPIVolumeFile, 2 defaultMode? int32
core/v1.EmptyDirVolumeSource: 1 medium $StorageMedium, 2 sizeLimit? quantity
core/v1.EndpointAddress: atomic, 1 ip+! string, 3 hostname string, 4 nodeName? string, 2 targetRef? ObjectReference
core/v1.EndpointPort: atomic, 1 name string, 2 port+! int32, 3 protocol $Protocol, 4 appProtocol? string
core/v1.EndpointSubset: 1 addresses *EndpointAddress, 2 notReadyAddresses *EndpointAddress, 3 ports *EndpointPort
core/v1.Endpoints: kind, 1 metadata+ meta/v1.ObjectMeta, 2 subsets *EndpointSubset
core/v1.EnvFromSource: 1 prefix string, 2 configMapRef? ConfigMapEnvSource, 3 secretRef? SecretEnvSource
core/v1.EnvVar: 1 name+! string, 2 value string, 3 valueFrom? EnvVarSource
core/v1.EnvVarSource: 1 fieldRef? ObjectFieldSelector, 2 resourceFieldRef? ResourceFieldSelector,
 3 configMapKeyRef? ConfigMapKeySelector, 4 secretKeyRef? SecretKeySelector, 5 fileKeyRef? FileKeySelector
core/v1.EphemeralContainer: 1 = EphemeralContainerCommon, 2 targetContainerName string
core/v1.EphemeralContainerCommon: 1 name+! string, 2 image string, 3 command *string, 4 args *string,
 5 workingDir string, 6 ports *ContainerPort map(containerPort/protocol) merge(containerPort),
 19 envFrom *EnvFromSource, 7 env *EnvVar map(name) merge(name), 8 resources+ ResourceRequirements,
 23 resizePolicy *ContainerResizePolicy, 24 restartPolicy? $ContainerRestartPolicy,
 25 restartPolicyRules *ContainerRestartRule, 9 volumeMounts *VolumeMount map(mountPath) merge(mountPath),
 21 volumeDevices *VolumeDevice map(devicePath) merge(devicePath), 10 livenessProbe? Probe, 11 readinessProbe? Probe,
 22 startupProbe? Probe, 12 lifecycle? Lifecycle, 13 terminationMessagePath string,
 20 terminationMessagePolicy $TerminationMessagePolicy, 14 imagePullPolicy $PullPolicy,
 15 securityContext? SecurityContext, 16 stdin bool, 17 stdinOnce bool, 18 tty bool
core/v1.EphemeralVolumeSource: 1 volumeClaimTemplate? PersistentVolumeClaimTemplate
core/v1.Event: kind, 1 metadata+! meta/v1.ObjectMeta, 2 involvedObject+! ObjectReference, 3 reason string,
 4 message string, 5 source+ EventSource, 6 firstTimestamp+ time, 7 lastTimestamp+ time, 8 count int32, 9 type string,
 10 eventTime+ microTime, 11 series? EventSeries, 12 action string, 13 related? ObjectReference,
 14 reportingComponent+ string, 15 reportingInstance+ string
core/v1.EventSeries: 1 count int32, 2 lastObservedTime+ microTime
core/v1.EventSource: 1 component string, 2 host string
core/v1.ExecAction: 1 command *string
core/v1.FCVolumeSource: 1 targetWWNs *string, 2 lun? int32, 3 fsType string, 4 readOnly bool, 5 wwids *string
core/v1.FileKeySelector: atomic, 1 volumeName+! string, 2 path+! string, 3 key+! string, 4 optional? bool
core/v1.FlexPersistentVolumeSource: 1 driver+! string, 2 fsType string, 3 secretRef? SecretReference, 4 readOnly bool,
 5 options %string
core/v1.FlexVolumeSource: 1 driver+! string, 2 fsType string, 3 secretRef? LocalObjectReference, 4 readOnly bool,
 5 options %string
core/v1.FlockerVolumeSource: 1 datasetName string, 2 datasetUUID string
core/v1.GCEPersistentDiskVolumeSource: 1 pdName+! string, 2 fsType string, 3 partition int32, 4 readOnly bool
core/v1.GRPCAction: 1 port+! int32, 2 service? string
core/v1.GitRepoVolumeSource: 1 repository+! string, 2 revision string, 3 directory string
core/v1.GlusterfsPersistentVolumeSource: 1 endpoints+! string, 2 path+! string, 3 readOnly bool,
 4 endpointsNamespace? string
core/v1.GlusterfsVolumeSource: 1 endpoints+! string, 2 path+! string, 3 readOnly bool
core/v1.HTTPGetAction: 1 path string, 2 port?! intOrString, 3 host string, 4 scheme $URIScheme,
 5 httpHeaders *HTTPHeader
core/v1.HTTPHeader: 1 name+! string, 2 value+! string
core/v1.HostAlias: 1 ip+! string, 2 hostnames *string
core/v1.HostIP: 1 ip+! string
core/v1.HostPathType: string BlockDevice|CharDevice|Directory|DirectoryOrCreate|File|FileOrCreate|Socket
core/v1.HostPathVolumeSource: 1 path+! string, 2 type? $HostPathType
core/v1.IPFamily: string IPv4|IPv6
core/v1.IPFamilyPolicy: string PreferDualStack|RequireDualStack|SingleStack
core/v1.ISCSIPersistentVolumeSource: 1 targetPortal+! string, 2 iqn+! string, 3 lun+! int32,
 4 iscsiInterface string default(default), 5 fsType string, 6 readOnly bool, 7 portals *string,
 8 chapAuthDiscovery bool, 11 chapAuthSession bool, 10 secretRef? SecretReference, 12 initiatorName? string
core/v1.ISCSIVolumeSource: 1 targetPortal+! string, 2 iqn+! string, 3 lun+! int32,
 4 iscsiInterface string default(default), 5 fsType string, 6 readOnly bool, 7 portals *string,
 8 chapAuthDiscovery bool, 11 chapAuthSession bool, 10 secretRef? LocalObjectReference, 12 initiatorName? string
core/v1.ImageVolumeSource: 1 reference string, 2 pullPolicy $PullPolicy
core/v1.ImageVolumeStatus: 1 imageRef! string
core/v1.KeyToPath: 1 key+! string, 2 path+! string, 3 mode? int32
core/v1.Lifecycle: 1 postStart? LifecycleHandler, 2 preStop? LifecycleHandler, 3 stopSignal? $Signal
core/v1.LifecycleHandler: 1 exec? ExecAction, 2 httpGet? HTTPGetAction, 3 tcpSocket? TCPSocketAction,
 4 sleep? SleepAction
core/v1.LimitRange: kind, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ LimitRangeSpec
core/v1.LimitRangeItem: 1 type+! $LimitType, 2 max %quantity, 3 min %quantity, 4 default %quantity,
 5 defaultRequest %quantity, 6 maxLimitRequestRatio %quantity
core/v1.LimitRangeSpec: 1 limits+! *LimitRangeItem
core/v1.LinuxContainerUser: 1 uid+! int64, 2 gid+! int64, 3 supplementalGroups *int64
core/v1.LoadBalancerIngress: 1 ip string, 2 hostname string, 3 ipMode? $LoadBalancerIPMode, 4 ports *PortStatus
core/v1.LoadBalancerStatus: 1 ingress *LoadBalancerIngress
core/v1.LocalObjectReference: atomic, 1 name string
core/v1.LocalVolumeSource: 1 path+! string, 2 fsType? string
core/v1.ModifyVolumeStatus: 1 targetVolumeAttributesClassName string,
 2 status+! $PersistentVolumeClaimModifyVolumeStatus
core/v1.MountPropagationMode: string Bidirectional|HostToContainer|None
core/v1.NFSVolumeSource: 1 server+! string, 2 path+! string, 3 readOnly bool
core/v1.Namespace: kind, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ NamespaceSpec, 3 status+ NamespaceStatus
core/v1.NamespaceCondition: 1 type+! $NamespaceConditionType, 2 status+! $ConditionStatus, 4 lastTransitionTime+ time,
 5 reason string, 6 message string
core/v1.NamespacePhase: string Active|Terminating
core/v1.NamespaceSpec: 1 finalizers *$FinalizerName
core/v1.NamespaceStatus: 1 phase $NamespacePhase, 2 conditions *NamespaceCondition map(type) merge(type)
core/v1.Node: kind, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ NodeSpec, 3 status+ NodeStatus
core/v1.NodeAddress: 1 type+! $NodeAddressType, 2 address+! string
core/v1.NodeAffinity: 1 requiredDuringSchedulingIgnoredDuringExecution? NodeSelector,
 2 preferredDuringSchedulingIgnoredDuringExecution *PreferredSchedulingTerm
core/v1.NodeCondition: 1 type+! $NodeConditionType, 2 status+! $ConditionStatus, 3 lastHeartbeatTime+ time,
 4 lastTransitionTime+ time, 5 reason string, 6 message string
core/v1.NodeConfigSource: 2 configMap? ConfigMapNodeConfigSource
core/v1.NodeConfigStatus: 1 assigned? NodeConfigSource, 2 active? NodeConfigSource, 3 lastKnownGood? NodeConfigSource,
 4 error string
core/v1.NodeDaemonEndpoints: 1 kubeletEndpoint+ DaemonEndpoint
core/v1.NodeFeatures: 1 supplementalGroupsPolicy? bool
core/v1.NodeInclusionPolicy: string Honor|Ignore
core/v1.NodePhase: string Pending|Running|Terminated
core/v1.NodeRuntimeHandler: 1 name+ string, 2 features? NodeRuntimeHandlerFeatures
core/v1.NodeRuntimeHandlerFeatures: 1 recursiveReadOnlyMounts? bool, 2 userNamespaces? bool
core/v1.NodeSelector: atomic, 1 nodeSelectorTerms+! *NodeSelectorTerm
core/v1.NodeSelectorOperator: string DoesNotExist|Exists|Gt|In|Lt|NotIn
core/v1.NodeSelectorRequirement: 1 key+! string, 2 operator+! $NodeSelectorOperator, 3 values *string
core/v1.NodeSelectorTerm: atomic, 1 matchExpressions *NodeSelectorRequirement, 2 matchFields *NodeSelectorRequirement
core/v1.NodeSpec: 1 podCIDR string, 7 podCIDRs *string set merge, 3 providerID string, 4 unschedulable bool,
 5 taints *Taint, 6 configSource? NodeConfigSource, 2 externalID string
core/v1.NodeStatus: 1 capacity %quantity, 2 allocatable %quantity, 3 phase $NodePhase,
 4 conditions *NodeCondition map(type) merge(type), 5 addresses *NodeAddress map(type) merge(type),
 6 daemonEndpoints+ NodeDaemonEndpoints, 7 nodeInfo+ NodeSystemInfo, 8 images *ContainerImage,
 9 volumesInUse *$UniqueVolumeName, 10 volumesAttached *AttachedVolume, 11 config? NodeConfigStatus,
 12 runtimeHandlers *NodeRuntimeHandler, 13 features? NodeFeatures, 14 declaredFeatures *string
core/v1.NodeSwapStatus: 1 capacity? int64
core/v1.NodeSystemInfo: 1 machineID+! string, 2 systemUUID+! string, 3 bootID+! string, 4 kernelVersion+! string,
 5 osImage+! string, 6 containerRuntimeVersion+! string, 7 kubeletVersion+! string, 8 kubeProxyVersion+! string,
 9 operatingSystem+! string, 10 architecture+! string, 11 swap? NodeSwapStatus
core/v1.ObjectFieldSelector: atomic, 1 apiVersion string, 2 fieldPath+! string
core/v1.ObjectReference: atomic, 1 kind string, 2 namespace string, 3 name string, 4 uid $types.UID,
 5 apiVersion string, 6 resourceVersion string, 7 fieldPath string
core/v1.PersistentVolume: kind, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ PersistentVolumeSpec,
 3 status+ PersistentVolumeStatus
core/v1.PersistentVolumeAccessMode: string ReadOnlyMany|ReadWriteMany|ReadWriteOnce|ReadWriteOncePod
core/v1.PersistentVolumeClaim: kind, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ PersistentVolumeClaimSpec,
 3 status+ PersistentVolumeClaimStatus
core/v1.PersistentVolumeClaimCondition: 1 type+! $PersistentVolumeClaimConditionType, 2 status+! $ConditionStatus,
 3 lastProbeTime+ time, 4 lastTransitionTime+ time, 5 reason string, 6 message string
core/v1.PersistentVolumeClaimModifyVolumeStatus: string InProgress|Infeasible|Pending
core/v1.PersistentVolumeClaimPhase: string Bound|Lost|Pending
core/v1.PersistentVolumeClaimSpec: 1 accessModes *$PersistentVolumeAccessMode, 4 selector? meta/v1.LabelSelector,
 2 resources+ VolumeResourceRequirements, 3 volumeName string, 5 storageClassName? string,
 6 volumeMode? $PersistentVolumeMode, 7 dataSource? TypedLocalObjectReference, 8 dataSourceRef? TypedObjectReference,
 9 volumeAttributesClassName? string
core/v1.PersistentVolumeClaimStatus: 1 phase $PersistentVolumeClaimPhase, 2 accessModes *$PersistentVolumeAccessMode,
 3 capacity %quantity, 4 conditions *PersistentVolumeClaimCondition map(type) merge(type),
 5 allocatedResources %quantity, 7 allocatedResourceStatuses %$ClaimResourceStatus,
 8 currentVolumeAttributesClassName? string, 9 modifyVolumeStatus? ModifyVolumeStatus
core/v1.PersistentVolumeClaimTemplate: 1 metadata+ meta/v1.ObjectMeta, 2 spec+! PersistentVolumeClaimSpec
core/v1.PersistentVolumeClaimVolumeSource: 1 claimName+! string, 2 readOnly bool
core/v1.PersistentVolumeMode: string Block|Filesystem
core/v1.PersistentVolumePhase: string Available|Bound|Failed|Pending|Released
core/v1.PersistentVolumeReclaimPolicy: string Delete|Recycle|Retain
core/v1.PersistentVolumeSource: 1 gcePersistentDisk? GCEPersistentDiskVolumeSource,
 2 awsElasticBlockStore? AWSElasticBlockStoreVolumeSource, 3 hostPath? HostPathVolumeSource,
 4 glusterfs? GlusterfsPersistentVolumeSource, 5 nfs? NFSVolumeSource, 6 rbd? RBDPersistentVolumeSource,
 7 iscsi? ISCSIPersistentVolumeSource, 8 cinder? CinderPersistentVolumeSource, 9 cephfs? CephFSPersistentVolumeSource,
 10 fc? FCVolumeSource, 11 flocker? FlockerVolumeSource, 12 flexVolume? FlexPersistentVolumeSource,
 13 azureFile? AzureFilePersistentVolumeSource, 14 vsphereVolume? VsphereVirtualDiskVolumeSource,
 15 quobyte? QuobyteVolumeSource, 16 azureDisk? AzureDiskVolumeSource,
 17 photonPersistentDisk? PhotonPersistentDiskVolumeSource, 18 portworxVolume? PortworxVolumeSource,
 19 scaleIO? ScaleIOPersistentVolumeSource, 20 local? LocalVolumeSource, 21 storageos? StorageOSPersistentVolumeSource,
 22 csi? CSIPersistentVolumeSource
core/v1.PersistentVolumeSpec: 1 capacity %quantity, 2 = PersistentVolumeSource,
 3 accessModes *$PersistentVolumeAccessMode, 4 claimRef? ObjectReference granular,
 5 persistentVolumeReclaimPolicy $PersistentVolumeReclaimPolicy, 6 storageClassName string, 7 mountOptions *string,
 8 volumeMode? $PersistentVolumeMode, 9 nodeAffinity? VolumeNodeAffinity, 10 volumeAttributesClassName? string
core/v1.PersistentVolumeStatus: 1 phase $PersistentVolumePhase, 2 message string, 3 reason string,
 4 lastPhaseTransitionTime? time
core/v1.PhotonPersistentDiskVolumeSource: 1 pdID+! string, 2 fsType string
core/v1.Pod: kind, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ PodSpec, 3 status+ PodStatus
core/v1.PodAffinity: 1 requiredDuringSchedulingIgnoredDuringExecution *PodAffinityTerm,
 2 preferredDuringSchedulingIgnoredDuringExecution *WeightedPodAffinityTerm
core/v1.PodAffinityTerm: 1 labelSelector? meta/v1.LabelSelector, 2 namespaces *string, 3 topologyKey+! string,
 4 namespaceSelector? meta/v1.LabelSelector, 5 matchLabelKeys *string, 6 mismatchLabelKeys *string
core/v1.PodAntiAffinity: 1 requiredDuringSchedulingIgnoredDuringExecution *PodAffinityTerm,
 2 preferredDuringSchedulingIgnoredDuringExecution *WeightedPodAffinityTerm
core/v1.PodCertificateProjection: 1 signerName! string, 2 keyType! string, 3 maxExpirationSeconds? int32,
 4 credentialBundlePath string, 5 keyPath string, 6 certificateChainPath string, 7 userAnnotations %string
core/v1.PodCondition: 1 type+! $PodConditionType, 7 observedGeneration int64, 2 status+! $ConditionStatus,
 3 lastProbeTime+ time, 4 lastTransitionTime+ time, 5 reason string, 6 message string
core/v1.PodDNSConfig: 1 nameservers *string, 2 searches *string, 3 options *PodDNSConfigOption
core/v1.PodDNSConfigOption: 1 name string, 2 value? string
core/v1.PodExtendedResourceClaimStatus: 1 requestMappings+! *ContainerExtendedResourceRequest,
 2 resourceClaimName+! string
core/v1.PodFSGroupChangePolicy: string Always|OnRootMismatch
core/v1.PodIP: 1 ip+! string
core/v1.PodOS: 1 name+! $OSName
core/v1.PodPhase: string Failed|Pending|Running|Succeeded|Unknown
core/v1.PodQOSClass: string BestEffort|Burstable|Guaranteed
core/v1.PodReadinessGate: 1 conditionType+! $PodConditionType
core/v1.PodResourceClaim: 1 name+! string, 3 resourceClaimName? string, 4 resourceClaimTemplateName? string
core/v1.PodResourceClaimStatus: 1 name+! string, 2 resourceClaimName? string
core/v1.PodSchedulingGate: 1 name+! string
core/v1.PodSecurityContext: 1 seLinuxOptions? SELinuxOptions, 8 windowsOptions? WindowsSecurityContextOptions,
 2 runAsUser? int64, 6 runAsGroup? int64, 3 runAsNonRoot? bool, 4 supplementalGroups *int64,
 12 supplementalGroupsPolicy? $SupplementalGroupsPolicy, 5 fsGroup? int64, 7 sysctls *Sysctl,
 9 fsGroupChangePolicy? $PodFSGroupChangePolicy, 10 seccompProfile? SeccompProfile, 11 appArmorProfile? AppArmorProfile,
 13 seLinuxChangePolicy? $PodSELinuxChangePolicy
core/v1.PodSpec: 1 volumes *Volume map(name) retain(name), 20 initContainers *Container map(name) merge(name),
 2 containers+! *Container map(name) merge(name), 34 ephemeralContainers *EphemeralContainer map(name) merge(name),
 3 restartPolicy $RestartPolicy, 4 terminationGracePeriodSeconds? int64, 5 activeDeadlineSeconds? int64,
 6 dnsPolicy $DNSPolicy, 7 nodeSelector %string atomic, 8 serviceAccountName string, 9 serviceAccount string,
 21 automountServiceAccountToken? bool, 10 nodeName string, 11 hostNetwork bool, 12 hostPID bool, 13 hostIPC bool,
 27 shareProcessNamespace? bool, 14 securityContext? PodSecurityContext,
 15 imagePullSecrets *LocalObjectReference map(name) merge(name), 16 hostname string, 17 subdomain string,
 18 affinity? Affinity, 19 schedulerName string, 22 tolerations *Toleration,
 23 hostAliases *HostAlias map(ip) merge(ip), 24 priorityClassName string, 25 priority? int32,
 26 dnsConfig? PodDNSConfig, 28 readinessGates *PodReadinessGate, 29 runtimeClassName? string,
 30 enableServiceLinks? bool, 31 preemptionPolicy? $PreemptionPolicy, 32 overhead %quantity,
 33 topologySpreadConstraints *TopologySpreadConstraint map(topologyKey/whenUnsatisfiable) merge(topologyKey),
 35 setHostnameAsFQDN? bool, 36 os? PodOS, 37 hostUsers? bool,
 38 schedulingGates *PodSchedulingGate map(name) merge(name),
 39 resourceClaims *PodResourceClaim map(name) retain(name), 40 resources? ResourceRequirements,
 41 hostnameOverride? string
core/v1.PodStatus: 17 observedGeneration int64, 1 phase $PodPhase, 2 conditions *PodCondition map(type) merge(type),
 3 message string, 4 reason string, 11 nominatedNodeName string, 5 hostIP string, 16 hostIPs *HostIP merge(ip),
 6 podIP string, 12 podIPs *PodIP map(ip) merge(ip), 7 startTime? time, 10 initContainerStatuses *ContainerStatus,
 8 containerStatuses *ContainerStatus, 9 qosClass $PodQOSClass, 13 ephemeralContainerStatuses *ContainerStatus,
 14 resize $PodResizeStatus, 15 resourceClaimStatuses *PodResourceClaimStatus map(name) retain(name),
 18 extendedResourceClaimStatus? PodExtendedResourceClaimStatus, 19 allocatedResources %quantity,
 20 resources? ResourceRequirements
core/v1.PodTemplate: kind, 1 metadata+ meta/v1.ObjectMeta, 2 template+ PodTemplateSpec
core/v1.PodTemplateSpec: 1 metadata+ meta/v1.ObjectMeta, 2 spec+ PodSpec
core/v1.PortStatus: 1 port+! int32, 2 protocol+! $Protocol, 3 error? string
core/v1.PortworxVolumeSource: 1 volumeID+! string, 2 fsType string, 3 readOnly bool
core/v1.PreemptionPolicy: string Never|PreemptLowerPriority
core/v1.PreferredSchedulingTerm: 1 weight+! int32, 2 preference+! NodeSelectorTerm
core/v1.Probe: 1 = ProbeHandler, 2 initialDelaySeconds int32, 3 timeoutSeconds int32, 4 periodSeconds int32,
 5 successThreshold int32, 6 failureThreshold int32, 7 terminationGracePeriodSeconds? int64
core/v1.ProbeHandler: 1 exec? ExecAction, 2 httpGet? HTTPGetAction, 3 tcpSocket? TCPSocketAction, 4 grpc? GRPCAction
core/v1.ProcMountType: string Default|Unmasked
core/v1.ProjectedVolumeSource: 1 sources+ *VolumeProjection, 2 defaultMode? int32
core/v1.Protocol: string SCTP|TCP|UDP
core/v1.PullPolicy: string Always|IfNotPresent|Never
core/v1.QuobyteVolumeSource: 1 registry+! string, 2 volume+! string, 3 readOnly bool, 4 user string, 5 group string,
 6 tenant string
core/v1.RBDPersistentVolumeSource: 1 monitors+! *string, 2 image+! string, 3 fsType string, 4 pool string default(rbd),
 5 user string default(admin), 6 keyring string default(/etc/ceph/keyring), 7 secretRef? SecretReference,
 8 readOnly bool
core/v1.RBDVolumeSource: 1 monitors+! *string, 2 image+! string, 3 fsType string, 4 pool string default(rbd),
 5 user string default(admin), 6 keyring string default(/etc/ceph/keyring), 7 secretRef? LocalObjectReference,
 8 readOnly bool
core/v1.ReplicationController: kind, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ ReplicationControllerSpec,
 3 status+ ReplicationControllerStatus
core/v1.ReplicationControllerCondition: 1 type+! $ReplicationControllerConditionType, 2 status+! $ConditionStatus,
 3 lastTransitionTime+ time, 4 reason string, 5 message string
core/v1.ReplicationControllerSpec: 1 replicas? int32, 4 minReadySeconds int32, 2 selector %string atomic,
 3 template? PodTemplateSpec
core/v1.ReplicationControllerStatus: 1 replicas+! int32, 2 fullyLabeledReplicas int32, 4 readyReplicas int32,
 5 availableReplicas int32, 3 observedGeneration int64,
 6 conditions *ReplicationControllerCondition map(type) merge(type)
core/v1.ResourceClaim: 1 name+! string, 2 request string
core/v1.ResourceFieldSelector: atomic, 1 containerName string, 2 resource+! string, 3 divisor+ quantity
core/v1.ResourceHealth: 1 resourceID+! $ResourceID, 2 health $ResourceHealthStatus, 6 message? string
core/v1.ResourceQuota: kind, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ ResourceQuotaSpec, 3 status+ ResourceQuotaStatus
core/v1.ResourceQuotaScope: string BestEffort|CrossNamespacePodAffinity|NotBestEffort|NotTerminating|PriorityClass|
 Terminating|VolumeAttributesClass
core/v1.ResourceQuotaSpec: 1 hard %quantity, 2 scopes *$ResourceQuotaScope, 3 scopeSelector? ScopeSelector
core/v1.ResourceQuotaStatus: 1 hard %quantity, 2 used %quantity
core/v1.ResourceRequirements: 1 limits %quantity, 2 requests %quantity, 3 claims *ResourceClaim map(name)
core/v1.ResourceStatus: 1 name+! $ResourceName, 2 resources *ResourceHealth map(resourceID)
core/v1.RestartPolicy: string Always|Never|OnFailure
core/v1.SELinuxOptions: 1 user string, 2 role string, 3 type string, 4 level string
core/v1.ScaleIOPersistentVolumeSource: 1 gateway+! string, 2 system+! string, 3 secretRef?! SecretReference,
 4 sslEnabled bool, 5 protectionDomain string, 6 storagePool string, 7 storageMode string default(ThinProvisioned),
 8 volumeName string, 9 fsType string default(xfs), 10 readOnly bool
core/v1.ScaleIOVolumeSource: 1 gateway+! string, 2 system+! string, 3 secretRef?! LocalObjectReference,
 4 sslEnabled bool, 5 protectionDomain string, 6 storagePool string, 7 storageMode string default(ThinProvisioned),
 8 volumeName string, 9 fsType string default(xfs), 10 readOnly bool
core/v1.ScopeSelector: atomic, 1 matchExpressions *ScopedResourceSelectorRequirement
core/v1.ScopeSelectorOperator: string DoesNotExist|Exists|In|NotIn
core/v1.ScopedResourceSelectorRequirement: 1 scopeName+! $ResourceQuotaScope, 2 operator+! $ScopeSelectorOperator,
 3 values *string
core/v1.SeccompProfile: 1 type+! $SeccompProfileType, 2 localhostProfile? string
core/v1.SeccompProfileType: string Localhost|RuntimeDefault|Unconfined
core/v1.Secret: kind, 1 metadata+ meta/v1.ObjectMeta, 5 immutable? bool, 2 data %bytes, 4 stringData %string,
 3 type $SecretType
core/v1.SecretEnvSource: 1 = LocalObjectReference, 2 optional? bool
core/v1.SecretKeySelector: atomic, 1 = LocalObjectReference, 2 key+! string, 3 optional? bool
core/v1.SecretProjection: 1 = LocalObjectReference, 2 items *KeyToPath, 4 optional? bool
core/v1.SecretReference: atomic, 1 name string, 2 namespace string
core/v1.SecretVolumeSource: 1 secretName string, 2 items *KeyToPath, 3 defaultMode? int32, 4 optional? bool
core/v1.SecurityContext: 1 capabilities? Capabilities, 2 privileged? bool, 3 seLinuxOptions? SELinuxOptions,
 10 windowsOptions? WindowsSecurityContextOptions, 4 runAsUser? int64, 8 runAsGroup? int64, 5 runAsNonRoot? bool,
 6 readOnlyRootFilesystem? bool, 7 allowPrivilegeEscalation? bool, 9 procMount? $ProcMountType,
 11 seccompProfile? SeccompProfile, 12 appArmorProfile? AppArmorProfile
core/v1.Service: kind, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ ServiceSpec, 3 status+ ServiceStatus
core/v1.ServiceAccount: kind, 1 metadata+ meta/v1.ObjectMeta, 2 secrets *ObjectReference map(name) merge(name),
 3 imagePullSecrets *LocalObjectReference, 4 automountServiceAccountToken? bool
core/v1.ServiceAccountTokenProjection: 1 audience string, 2 expirationSeconds? int64, 3 path+! string
core/v1.ServiceAffinity: string ClientIP|None
core/v1.ServiceExternalTrafficPolicy: string Cluster|Local
core/v1.ServiceInternalTrafficPolicy: string Cluster|Local
core/v1.ServicePort: 1 name string, 2 protocol $Protocol default(TCP), 6 appProtocol? string, 3 port+! int32,
 4 targetPort? intOrString, 5 nodePort int32
core/v1.ServiceSpec: 1 ports *ServicePort map(port/protocol) merge(port), 2 selector %string atomic, 3 clusterIP string,
 18 clusterIPs *string, 4 type $ServiceType, 5 externalIPs *string, 7 sessionAffinity $ServiceAffinity,
 8 loadBalancerIP string, 9 loadBalancerSourceRanges *string, 10 externalName string,
 11 externalTrafficPolicy $ServiceExternalTrafficPolicy, 12 healthCheckNodePort int32, 13 publishNotReadyAddresses bool,
 14 sessionAffinityConfig? SessionAffinityConfig, 19 ipFamilies *$IPFamily, 17 ipFamilyPolicy? $IPFamilyPolicy,
 20 allocateLoadBalancerNodePorts? bool, 21 loadBalancerClass? string,
 22 internalTrafficPolicy? $ServiceInternalTrafficPolicy, 23 trafficDistribution? string
core/v1.ServiceStatus: 1 loadBalancer+ LoadBalancerStatus, 2 conditions *meta/v1.Condition map(type) merge(type)
core/v1.ServiceType: string ClusterIP|ExternalName|LoadBalancer|NodePort
core/v1.SessionAffinityConfig: 1 clientIP? ClientIPConfig
core/v1.Signal: string SIGABRT|SIGALRM|SIGBUS|SIGCHLD|SIGCLD|SIGCONT|SIGFPE|SIGHUP|SIGILL|SIGINT|SIGIO|SIGIOT|SIGKILL|
 SIGPIPE|SIGPOLL|SIGPROF|SIGPWR|SIGQUIT|SIGRTMAX|SIGRTMAX-1|SIGRTMAX-10|SIGRTMAX-11|SIGRTMAX-12|SIGRTMAX-13|
 SIGRTMAX-14|SIGRTMAX-2|SIGRTMAX-3|SIGRTMAX-4|SIGRTMAX-5|SIGRTMAX-6|SIGRTMAX-7|SIGRTMAX-8|SIGRTMAX-9|SIGRTMIN|
 SIGRTMIN+1|SIGRTMIN+10|SIGRTMIN+11|SIGRTMIN+12|SIGRTMIN+13|SIGRTMIN+14|SIGRTMIN+15|SIGRTMIN+2|SIGRTMIN+3|SIGRTMIN+4|
 SIGRTMIN+5|SIGRTMIN+6|SIGRTMIN+7|SIGRTMIN+8|SIGRTMIN+9|SIGSEGV|SIGSTKFLT|SIGSTOP|SIGSYS|SIGTERM|SIGTRAP|SIGTSTP|
 SIGTTIN|SIGTTOU|SIGURG|SIGUSR1|SIGUSR2|SIGVTALRM|SIGWINCH|SIGXCPU|SIGXFSZ
core/v1.SleepAction: 1 seconds+! int64
core/v1.StorageOSPersistentVolumeSource: 1 volumeName string, 2 volumeNamespace string, 3 fsType string,
 4 readOnly bool, 5 secretRef? ObjectReference
core/v1.StorageOSVolumeSource: 1 volumeName string, 2 volumeNamespace string, 3 fsType string, 4 readOnly bool,
 5 secretRef? LocalObjectReference
core/v1.SupplementalGroupsPolicy: string Merge|Strict
core/v1.Sysctl: 1 name+! string, 2 value+! string
core/v1.TCPSocketAction: 1 port?! intOrString, 2 host string
core/v1.Taint: 1 key+! string, 2 value string, 3 effect+! $TaintEffect, 4 timeAdded? time
core/v1.TaintEffect: string NoExecute|NoSchedule|PreferNoSchedule
core/v1.TerminationMessagePolicy: string FallbackToLogsOnError|File
core/v1.Toleration: 1 key string, 2 operator $TolerationOperator, 3 value string, 4 effect $TaintEffect,
 5 tolerationSeconds? int64
core/v1.TolerationOperator: string Equal|Exists|Gt|Lt
core/v1.TopologySelectorLabelRequirement: 1 key+! string, 2 values+! *string
core/v1.TopologySelectorTerm: atomic, 1 matchLabelExpressions *TopologySelectorLabelRequirement
core/v1.TopologySpreadConstraint: 1 maxSkew+! int32, 2 topologyKey+! string,
 3 whenUnsatisfiable+! $UnsatisfiableConstraintAction, 4 labelSelector? meta/v1.LabelSelector, 5 minDomains? int32,
 6 nodeAffinityPolicy? $NodeInclusionPolicy, 7 nodeTaintsPolicy? $NodeInclusionPolicy, 8 matchLabelKeys *string
core/v1.TypedLocalObjectReference: atomic, 1 apiGroup? string, 2 kind+! string, 3 name+! string
core/v1.TypedObjectReference: 1 apiGroup? string, 2 kind+! string, 3 name+! string, 4 namespace? string
core/v1.URIScheme: string HTTP|HTTPS
core/v1.UnsatisfiableConstraintAction: string DoNotSchedule|ScheduleAnyway
core/v1.Volume: 1 name+! string, 2 = VolumeSource
core/v1.VolumeDevice: 1 name+! string, 2 devicePath+! string
core/v1.VolumeMount: 1 name+! string, 2 readOnly bool, 7 recursiveReadOnly? $RecursiveReadOnlyMode,
 3 mountPath+! string, 4 subPath string, 5 mountPropagation? $MountPropagationMode, 6 subPathExpr string
core/v1.VolumeMountStatus: 1 name+! string, 2 mountPath+! string, 3 readOnly bool,
 4 recursiveReadOnly? $RecursiveReadOnlyMode, 5 volumeStatus? VolumeStatus
core/v1.VolumeNodeAffinity: 1 required? NodeSelector
core/v1.VolumeProjection: 1 secret? SecretProjection, 2 downwardAPI? DownwardAPIProjection,
 3 configMap? ConfigMapProjection, 4 serviceAccountToken? ServiceAccountTokenProjection,
 5 clusterTrustBundle? ClusterTrustBundleProjection, 6 podCertificate? PodCertificateProjection
core/v1.VolumeResourceRequirements: 1 limits %quantity, 2 requests %quantity
core/v1.VolumeSource: 1 hostPath? HostPathVolumeSource, 2 emptyDir? EmptyDirVolumeSource,
 3 gcePersistentDisk? GCEPersistentDiskVolumeSource, 4 awsElasticBlockStore? AWSElasticBlockStoreVolumeSource,
 5 gitRepo? GitRepoVolumeSource, 6 secret? SecretVolumeSource, 7 nfs? NFSVolumeSource, 8 iscsi? ISCSIVolumeSource,
 9 glusterfs? GlusterfsVolumeSource, 10 persistentVolumeClaim? PersistentVolumeClaimVolumeSource,
 11 rbd? RBDVolumeSource, 12 flexVolume? FlexVolumeSource, 13 cinder? CinderVolumeSource, 14 cephfs? CephFSVolumeSource,
 15 flocker? FlockerVolumeSource, 16 downwardAPI? DownwardAPIVolumeSource, 17 fc? FCVolumeSource,
 18 azureFile? AzureFileVolumeSource, 19 configMap? ConfigMapVolumeSource,
 20 vsphereVolume? VsphereVirtualDiskVolumeSource, 21 quobyte? QuobyteVolumeSource, 22 azureDisk? AzureDiskVolumeSource,
 23 photonPersistentDisk? PhotonPersistentDiskVolumeSource, 26 projected? ProjectedVolumeSource,
 24 portworxVolume? PortworxVolumeSource, 25 scaleIO? ScaleIOVolumeSource, 27 storageos? StorageOSVolumeSource,
 28 csi? CSIVolumeSource, 29 ephemeral? EphemeralVolumeSource, 30 image? ImageVolumeSource
core/v1.VolumeStatus: 1 image? ImageVolumeStatus
core/v1.VsphereVirtualDiskVolumeSource: 1 volumePath+! string, 2 fsType string, 3 storagePolicyName string,
 4 storagePolicyID string
core/v1.WeightedPodAffinityTerm: 1 weight+! int32, 2 podAffinityTerm+! PodAffinityTerm
core/v1.WindowsSecurityContextOptions: 1 gmsaCredentialSpecName? string, 2 gmsaCredentialSpec? string,
 3 runAsUserName? string, 4 hostProcess? bool
discovery/v1.AddressType: string 
discovery/v1.Endpoint: 1 addresses+! *string set, 2 conditions+ EndpointConditions, 3 hostname? string,
 4 targetRef? core/v1.ObjectReference, 5 deprecatedTopology %string, 6 nodeName? string, 7 zone? string,
 8 hints? EndpointHints
discovery/v1.EndpointConditions: 1 ready? bool, 2 serving? bool, 3 terminating? bool
discovery/v1.EndpointHints: 1 forZones *ForZone, 2 forNodes *ForNode
discovery/v1.EndpointPort: atomic, 1 name? string, 2 protocol? $core/v1.Protocol, 3 port? int32, 4 appProtocol? string
discovery/v1.EndpointSlice: kind discovery.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 4 addressType+! $AddressType,
 2 endpoints+ *Endpoint, 3 ports+ *EndpointPort
discovery/v1.ForNode: 1 name+! string
discovery/v1.ForZone: 1 name+! string
events/v1.Event: kind events.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 eventTime+! microTime, 3 series? EventSeries,
 4 reportingController string, 5 reportingInstance string, 6 action string, 7 reason string,
 8 regarding+ core/v1.ObjectReference, 9 related? core/v1.ObjectReference, 10 note string, 11 type string,
 12 deprecatedSource+ core/v1.EventSource, 13 deprecatedFirstTimestamp+ time, 14 deprecatedLastTimestamp+ time,
 15 deprecatedCount int32
events/v1.EventSeries: 1 count+! int32, 2 lastObservedTime+! microTime
meta/v1.Condition: 1 type+! string, 2 status+! $ConditionStatus, 3 observedGeneration int64,
 4 lastTransitionTime+! time, 5 reason+! string, 6 message+! string
meta/v1.DeleteOptions: kind, 1 gracePeriodSeconds? int64, 2 preconditions? Preconditions, 3 orphanDependents? bool,
 4 propagationPolicy? $DeletionPropagation, 5 dryRun *string, 6 ignoreStoreReadErrorWithClusterBreakingPotential? bool
meta/v1.FieldSelectorRequirement: 1 key+! string, 2 operator+! $FieldSelectorOperator, 3 values *string
meta/v1.LabelSelector: atomic, 1 matchLabels %string, 2 matchExpressions *LabelSelectorRequirement
meta/v1.LabelSelectorRequirement: 1 key+! string, 2 operator+! $LabelSelectorOperator, 3 values *string
meta/v1.ListMeta: 1 selfLink string, 2 resourceVersion string, 3 continue string, 4 remainingItemCount? int64
meta/v1.Preconditions: 1 uid? $types.UID, 2 resourceVersion? string
meta/v1.Status: kind, 1 metadata+ ListMeta, 2 status string, 3 message string, 4 reason $StatusReason,
 5 details? StatusDetails, 6 code int32
meta/v1.StatusCause: 1 reason $CauseType, 2 message string, 3 field string
meta/v1.StatusDetails: 1 name string, 2 group string, 3 kind string, 6 uid $types.UID, 4 causes *StatusCause,
 5 retryAfterSeconds int32
networking/v1.HTTPIngressPath: 1 path string, 3 pathType?! $PathType, 2 backend+! IngressBackend
networking/v1.HTTPIngressRuleValue: 1 paths+! *HTTPIngressPath
networking/v1.IPBlock: 1 cidr+! string, 2 except *string
networking/v1.Ingress: kind networking.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ IngressSpec,
 3 status+ IngressStatus
networking/v1.IngressBackend: 4 service? IngressServiceBackend, 3 resource? core/v1.TypedLocalObjectReference
networking/v1.IngressClass: kind networking.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ IngressClassSpec
networking/v1.IngressClassParametersReference: 1 apiGroup? string, 2 kind+! string, 3 name+! string, 4 scope? string,
 5 namespace? string
networking/v1.IngressClassSpec: 1 controller string, 2 parameters? IngressClassParametersReference
networking/v1.IngressLoadBalancerIngress: 1 ip string, 2 hostname string, 4 ports *IngressPortStatus
networking/v1.IngressLoadBalancerStatus: 1 ingress *IngressLoadBalancerIngress
networking/v1.IngressPortStatus: 1 port+! int32, 2 protocol+! $core/v1.Protocol, 3 error? string
networking/v1.IngressRule: 1 host string, 2 = IngressRuleValue
networking/v1.IngressRuleValue: 1 http? HTTPIngressRuleValue
networking/v1.IngressServiceBackend: 1 name+! string, 2 port+ ServiceBackendPort
networking/v1.IngressSpec: 4 ingressClassName? string, 1 defaultBackend? IngressBackend, 2 tls *IngressTLS,
 3 rules *IngressRule
networking/v1.IngressStatus: 1 loadBalancer+ IngressLoadBalancerStatus
networking/v1.IngressTLS: 1 hosts *string, 2 secretName string
networking/v1.NetworkPolicy: kind networking.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ NetworkPolicySpec
networking/v1.NetworkPolicyEgressRule: 1 ports *NetworkPolicyPort, 2 to *NetworkPolicyPeer
networking/v1.NetworkPolicyIngressRule: 1 ports *NetworkPolicyPort, 2 from *NetworkPolicyPeer
networking/v1.NetworkPolicyPeer: 1 podSelector? meta/v1.LabelSelector, 2 namespaceSelector? meta/v1.LabelSelector,
 3 ipBlock? IPBlock
networking/v1.NetworkPolicyPort: 1 protocol? $core/v1.Protocol, 2 port? intOrString, 3 endPort? int32
networking/v1.NetworkPolicySpec: 1 podSelector+ meta/v1.LabelSelector, 2 ingress *NetworkPolicyIngressRule,
 3 egress *NetworkPolicyEgressRule, 4 policyTypes *$PolicyType
networking/v1.PathType: string 
networking/v1.PolicyType: string Egress|Ingress
networking/v1.ServiceBackendPort: atomic, 1 name string, 2 number int32
node/v1.Overhead: 1 podFixed %quantity
node/v1.RuntimeClass: kind node.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 handler+! string, 3 overhead? Overhead,
 4 scheduling? Scheduling
node/v1.Scheduling: 1 nodeSelector %string atomic, 2 tolerations *core/v1.Toleration
policy/v1.Eviction: kind policy, 1 metadata+ meta/v1.ObjectMeta, 2 deleteOptions? meta/v1.DeleteOptions
policy/v1.PodDisruptionBudget: kind policy, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ PodDisruptionBudgetSpec,
 3 status+ PodDisruptionBudgetStatus
policy/v1.PodDisruptionBudgetSpec: 1 minAvailable? intOrString, 2 selector? meta/v1.LabelSelector patch(replace),
 3 maxUnavailable? intOrString, 4 unhealthyPodEvictionPolicy? $UnhealthyPodEvictionPolicyType
policy/v1.PodDisruptionBudgetStatus: 1 observedGeneration int64, 2 disruptedPods %time, 3 disruptionsAllowed+ int32,
 4 currentHealthy+ int32, 5 desiredHealthy+ int32, 6 expectedPods+ int32,
 7 conditions *meta/v1.Condition map(type) merge(type)
policy/v1.UnhealthyPodEvictionPolicyType: string AlwaysAllow|IfHealthyBudget
policy/v1beta1.Eviction: kind policy, 1 metadata+ meta/v1.ObjectMeta, 2 deleteOptions? meta/v1.DeleteOptions
policy/v1beta1.PodDisruptionBudget: kind policy, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ PodDisruptionBudgetSpec,
 3 status+ PodDisruptionBudgetStatus
policy/v1beta1.PodDisruptionBudgetSpec: 1 minAvailable? intOrString, 2 selector? meta/v1.LabelSelector,
 3 maxUnavailable? intOrString, 4 unhealthyPodEvictionPolicy? $UnhealthyPodEvictionPolicyType
policy/v1beta1.PodDisruptionBudgetStatus: 1 observedGeneration int64, 2 disruptedPods %time,
 3 disruptionsAllowed+ int32, 4 currentHealthy+ int32, 5 desiredHealthy+ int32, 6 expectedPods+ int32,
 7 conditions *meta/v1.Condition map(type) merge(type)
policy/v1beta1.UnhealthyPodEvictionPolicyType: string AlwaysAllow|IfHealthyBudget
rbac/v1.AggregationRule: 1 clusterRoleSelectors *meta/v1.LabelSelector
rbac/v1.ClusterRole: kind rbac.authorization.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 rules+ *PolicyRule,
 3 aggregationRule? AggregationRule
rbac/v1.ClusterRoleBinding: kind rbac.authorization.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 subjects *Subject,
 3 roleRef+! RoleRef
rbac/v1.PolicyRule: 1 verbs+! *string, 2 apiGroups *string, 3 resources *string, 4 resourceNames *string,
 5 nonResourceURLs *string
rbac/v1.Role: kind rbac.authorization.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 rules+ *PolicyRule
rbac/v1.RoleBinding: kind rbac.authorization.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 subjects *Subject,
 3 roleRef+! RoleRef
rbac/v1.RoleRef: atomic, 1 apiGroup+ string, 2 kind+! string, 3 name+! string
rbac/v1.Subject: atomic, 1 kind+! string, 2 apiGroup string, 3 name+! string, 4 namespace string
scheduling/v1.PriorityClass: kind scheduling.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 value+ int32,
 3 globalDefault bool, 4 description string, 5 preemptionPolicy? $core/v1.PreemptionPolicy
storage/v1.CSIDriver: kind storage.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 spec+! CSIDriverSpec
storage/v1.CSIDriverSpec: 1 attachRequired? bool, 2 podInfoOnMount? bool,
 3 volumeLifecycleModes *$VolumeLifecycleMode set, 4 storageCapacity? bool, 5 fsGroupPolicy? $FSGroupPolicy,
 6 tokenRequests *TokenRequest, 7 requiresRepublish? bool, 8 seLinuxMount? bool,
 9 nodeAllocatableUpdatePeriodSeconds? int64, 10 serviceAccountTokenInSecrets? bool
storage/v1.CSINode: kind storage.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 spec+! CSINodeSpec
storage/v1.CSINodeDriver: 1 name+! string, 2 nodeID+! string, 3 topologyKeys+ *string,
 4 allocatable? VolumeNodeResources
storage/v1.CSINodeSpec: 1 drivers+! *CSINodeDriver map(name) merge(name)
storage/v1.CSIStorageCapacity: kind storage.k8s.io, 1 metadata+ meta/v1.ObjectMeta,
 2 nodeTopology? meta/v1.LabelSelector, 3 storageClassName+! string, 4 capacity? quantity, 5 maximumVolumeSize? quantity
storage/v1.StorageClass: kind storage.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 provisioner+! string,
 3 parameters %string, 4 reclaimPolicy? $core/v1.PersistentVolumeReclaimPolicy, 5 mountOptions *string,
 6 allowVolumeExpansion? bool, 7 volumeBindingMode? $VolumeBindingMode,
 8 allowedTopologies *core/v1.TopologySelectorTerm
storage/v1.TokenRequest: 1 audience+! string, 2 expirationSeconds? int64
storage/v1.VolumeAttachment: kind storage.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 spec+! VolumeAttachmentSpec,
 3 status+ VolumeAttachmentStatus
storage/v1.VolumeAttachmentSource: 1 persistentVolumeName? string, 2 inlineVolumeSpec? core/v1.PersistentVolumeSpec
storage/v1.VolumeAttachmentSpec: 1 attacher+! string, 2 source+! VolumeAttachmentSource, 3 nodeName+! string
storage/v1.VolumeAttachmentStatus: 1 attached+! bool, 2 attachmentMetadata %string, 3 attachError? VolumeError,
 4 detachError? VolumeError
storage/v1.VolumeBindingMode: string Immediate|WaitForFirstConsumer
storage/v1.VolumeError: 1 time+ time, 2 message string, 3 errorCode? int32
storage/v1.VolumeNodeResources: 1 count? int32
`;
