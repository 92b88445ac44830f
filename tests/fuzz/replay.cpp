// Gives files to a fuzz target once each, where there is no fuzzer: the kept inputs are tests of every build.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int count, char** words) {
    int given = 0;
    for (int i = 1; i < count; ++i) {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(words[i])) {
            if (entry.is_regular_file()) {
                std::ifstream file(entry.path(), std::ios::binary);
                const std::string bytes(std::istreambuf_iterator<char>(file), {});
                std::fprintf(stderr, "%s\n", entry.path().c_str());  // the last one named is the one that broke
                LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
                ++given;
            }
        }
    }
    std::printf("%d inputs replayed\n", given);
    return given > 0 ? 0 : 1;
}
