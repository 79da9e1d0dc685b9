// Which of the metrics on stdin a chip knows, by NVIDIA's own list: "1 NAME" or "0 NAME" a line.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvperf_cuda_host.h>
#include <nvperf_host.h>

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    NVPW_InitializeHost_Params start = {NVPW_InitializeHost_Params_STRUCT_SIZE};
    if (NVPW_InitializeHost(&start)) return 3;
    NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize_Params size = {
        NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize_Params_STRUCT_SIZE};
    size.pChipName = argv[1];
    if (NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize(&size)) return 4;
    NVPW_CUDA_MetricsEvaluator_Initialize_Params chip = {
        NVPW_CUDA_MetricsEvaluator_Initialize_Params_STRUCT_SIZE};
    chip.pChipName = argv[1];
    chip.scratchBufferSize = size.scratchBufferSize;
    chip.pScratchBuffer = malloc(size.scratchBufferSize);
    if (NVPW_CUDA_MetricsEvaluator_Initialize(&chip)) return 5;
    char name[512];
    while (fgets(name, sizeof name, stdin)) {
        name[strcspn(name, "\n")] = 0;
        NVPW_MetricEvalRequest request;
        NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest_Params ask = {
            NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest_Params_STRUCT_SIZE};
        ask.pMetricsEvaluator = chip.pMetricsEvaluator;
        ask.pMetricName = name;
        ask.pMetricEvalRequest = &request;
        ask.metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE;
        printf("%d %s\n", !NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest(&ask), name);
    }
    return 0;
}
